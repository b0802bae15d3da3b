#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/instant.h"
#include "scheduler/block_pool.h"
#include "scheduler/block_tables.h"
#include "scheduler/job_log.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/public_lane.h"
#include "scheduler/request_slab.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_draft.h"
#include "scheduler/tenant.h"
#include "scheduler/tenant_queue.h"

namespace pagoda::scheduler {

// One KV group so far: one pool, one index, one set of tables. Create refuses more.
inline constexpr base::KvGroupId kOnlyGroup{0};

// No request is as young.
inline constexpr base::RequestId kNoBarrier{~std::uint64_t{0}};

// A device row.
struct Slot {
  static constexpr RequestIndex kNobody{0xffffffffu};
  RequestIndex request = kNobody;
  std::uint32_t generation = 0;    // openings
  bool is_open_on_device = false;  // told by an `opened`, not yet by a `closed`
  bool must_open = false;          // the sequence's row has not been told yet
};

std::vector<TenantShare> SharesOf(std::span<const TenantConfig> tenants);

// Everything the scheduler knows: fixed arrays with indices, no pointers between parts but the
// namespaces'. Its parts keep their own invariants; what holds between them is derived by
// CheckInvariants (scheduler_invariants.cc). The rules live in functions over it, one file each:
// admission, fair_counters, forking, giving, growth, lifecycle, planning, reconfiguration,
// completion.
struct SchedulerState {
  explicit SchedulerState(const SchedulerConfig& config);

  SchedulerConfig config;
  PrefixCache cache;
  BlockPool pool;
  PublicLane public_lane;
  BlockTables tables;
  std::vector<BlockOwner> block_owners;  // by block, since its last hand-out
  RequestSlab requests;
  std::vector<Sequence> sequences;  // by slot; one whose slot is nobody's means nothing
  // By slot: blocks that only its sequence held, summed over the steps of its stay.
  std::vector<std::int64_t> block_steps_of_slot;
  std::vector<TenantQueue> queues;  // by tenant
  std::vector<Tenant> tenants;
  std::vector<TenantConfig> pending_tenants;  // asked for by Reconfigure, not in force yet
  std::vector<TenantShare> pending_shares;
  std::vector<base::SlotId> running;  // oldest request first, its choices in order
  std::vector<Slot> slots;
  JobLog jobs;
  StepDraft draft;
  std::vector<DraftEffect> fork_copies;  // the next plan begins with them (forking.h)
  std::vector<StepPlan> plans;           // a ring: one more than may be in flight
  std::vector<FinishEvent> finished;

  // Of the plan in the making.
  base::Instant planning_at;
  StepBudget left;  // of the whole step
  // The oldest elastic head that was refused only for common blocks: nobody younger draws on
  // common before it.
  base::RequestId barrier = kNoBarrier;

  bool derives_attention_chunks = false;
  std::uint64_t incarnations = 0;
  std::int32_t num_with_deadline = 0;  // live requests
  std::int64_t num_steps = 0;
  SchedulerStats counters;  // only the totals; the gauges are read from the parts
  BlockStepTotals block_steps;

  // Scratch, reserved once.
  std::vector<base::BlockId> hits;
  std::vector<BlockRef> taken;
  std::vector<base::SlotId> snapshot;
  std::vector<base::SlotId> unserved;  // of the plan in the making: planning.cc
  std::vector<base::TenantId> turns;

  Tenant& TenantOf(const LiveRequest& live) { return tenants[live.request->tenant.value()]; }
  const Tenant& TenantOf(const LiveRequest& live) const {
    return tenants[live.request->tenant.value()];
  }
  Tenant& TenantOf(const Sequence& sequence) { return tenants[sequence.tenant.value()]; }
  const Tenant& TenantOf(const Sequence& sequence) const {
    return tenants[sequence.tenant.value()];
  }
  TenantQueue& QueueOf(const LiveRequest& live) { return queues[live.request->tenant.value()]; }
  bool IsRunning(base::SlotId slot) const { return slots[slot.value()].request != Slot::kNobody; }
  Sequence& SequenceIn(base::SlotId slot) { return sequences[slot.value()]; }
  const Sequence& SequenceIn(base::SlotId slot) const { return sequences[slot.value()]; }
  // Has the processor fetch the sequence, for a pass that will soon come to it: slots are walked by
  // age, which is no order in memory.
  void FetchSequence(base::SlotId slot) const {
    const Sequence* sequence = &sequences[slot.value()];
    __builtin_prefetch(sequence, /*rw=*/1);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(sequence) + 64, /*rw=*/1);
  }
  LiveRequest& RequestOf(const Sequence& sequence) { return requests[sequence.request]; }
  const LiveRequest& RequestOf(const Sequence& sequence) const {
    return requests[sequence.request];
  }
  Choice& ChoiceOf(const Sequence& sequence) { return *sequence.record; }
  const Choice& ChoiceOf(const Sequence& sequence) const { return *sequence.record; }
  ScoredRows ScoredRowsOf(const Sequence& sequence) const {
    return sequence.asks_for_scores ? RequestOf(sequence).scored_rows() : ScoredRows{};
  }
  std::int32_t block_size() const { return config.block_size; }
  std::int32_t num_free_slots() const {
    return static_cast<std::int32_t>(slots.size() - running.size());
  }
  std::int32_t HistoryRoom() const;  // of one tenant in one plan
};

}  // namespace pagoda::scheduler
