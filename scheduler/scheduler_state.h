#pragma once

#include <cstdint>
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
#include "scheduler/tenant_queue.h"

namespace pagoda::scheduler {

// One KV group so far: one pool, one index, one set of tables. Create refuses more.
inline constexpr base::KvGroupId kOnlyGroup{0};

// Whose content a block holds (owner_check.h).
using BlockOwner = base::StrongId<struct BlockOwnerTag, std::uint64_t>;

// A device row.
struct Slot {
  static constexpr RequestIndex kNobody{0xffffffffu};
  RequestIndex request = kNobody;
  std::uint32_t generation = 0;    // openings
  bool is_open_on_device = false;  // told by an `opened`, not yet by a `closed`
  bool must_open = false;          // the sequence's row has not been told yet
};

// One tenant's part of the state, beside its queue and its account in the pool.
struct Tenant {
  TenantConfig config;
  TenantStats counts = {};  // only the totals; the gauges are read from the parts
};

std::vector<TenantShare> SharesOf(const SchedulerConfig& config);

// Everything the scheduler knows: fixed arrays with indices, no pointers between parts but the
// namespaces'. Its parts keep their own invariants; what holds between them is derived by
// CheckInvariants (scheduler_invariants.cc). The rules live in functions over it, one file each:
// admission, growth, planning, forking, lifecycle, completion.
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
  std::vector<TenantQueue> queues;  // by tenant
  std::vector<Tenant> tenants;
  std::vector<TenantConfig> pending_tenants;  // asked for by Reconfigure, not in force yet
  std::vector<base::SlotId> running;          // oldest request first, its choices in order
  std::vector<Slot> slots;
  JobLog jobs;
  StepDraft draft;
  std::vector<DraftEffect> fork_copies;  // the next plan begins with them (forking.h)
  std::vector<StepPlan> plans;           // a ring: one more than may be in flight
  std::vector<FinishEvent> finished;

  // What a plan may still carry of histories and table entries, so that its arrays have a bound.
  std::int32_t history_room_tokens = 0;
  std::int32_t table_room_entries = 0;

  base::Instant planning_at;  // of the plan in the making
  std::uint64_t incarnations = 0;
  std::int64_t num_steps = 0;
  SchedulerStats counters;  // only the totals; the gauges are read from the parts
  BlockStepTotals block_steps;

  // Scratch, reserved once.
  std::vector<base::BlockId> hits;
  std::vector<BlockRef> taken;
  std::vector<base::SlotId> snapshot;

  Tenant& TenantOf(const LiveRequest& live) { return tenants[live.request->tenant.value()]; }
  TenantQueue& QueueOf(const LiveRequest& live) { return queues[live.request->tenant.value()]; }
  bool IsRunning(base::SlotId slot) const { return slots[slot.value()].request != Slot::kNobody; }
  Sequence& SequenceIn(base::SlotId slot) { return sequences[slot.value()]; }
  const Sequence& SequenceIn(base::SlotId slot) const { return sequences[slot.value()]; }
  LiveRequest& RequestOf(const Sequence& sequence) { return requests[sequence.request]; }
  const LiveRequest& RequestOf(const Sequence& sequence) const {
    return requests[sequence.request];
  }
  Choice& ChoiceOf(const Sequence& sequence) {
    return RequestOf(sequence).request->choice(sequence.choice);
  }
  const Choice& ChoiceOf(const Sequence& sequence) const {
    return RequestOf(sequence).request->choice(sequence.choice);
  }
  std::int32_t block_size() const { return config.block_size; }
  std::int32_t HistoryRoom() const;
};

}  // namespace pagoda::scheduler
