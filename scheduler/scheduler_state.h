#pragma once

#include <cstdint>
#include <vector>

#include "base/instant.h"
#include "scheduler/block_pool.h"
#include "scheduler/block_tables.h"
#include "scheduler/job_log.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/scheduler.h"
#include "scheduler/sequence_slab.h"
#include "scheduler/step_draft.h"
#include "scheduler/tenant_queue.h"

namespace pagoda::scheduler {

// Without configured tenants there is this one, with no reserve and all of common, of the budget
// and of the slots.
inline constexpr base::TenantId kDefaultTenant{0};
// One KV group so far: one pool, one index, one set of tables. Create refuses more.
inline constexpr base::KvGroupId kOnlyGroup{0};

// A device row.
struct Slot {
  static constexpr SequenceIndex kNobody{0xffffffffu};
  SequenceIndex sequence = kNobody;
  std::uint32_t generation = 0;    // openings
  bool is_open_on_device = false;  // told by an `opened`, not yet by a `closed`
  bool must_open = false;          // the sequence's row has not been told yet
};

// Everything the scheduler knows: fixed arrays with indices, no pointers between parts but the
// namespaces'. Its parts keep their own invariants; what holds between them is derived by
// CheckInvariants (scheduler_invariants.cc). The rules live in functions over it, one file each:
// admission, growth, planning, lifecycle, completion.
struct SchedulerState {
  explicit SchedulerState(const SchedulerConfig& config);

  SchedulerConfig config;
  PrefixCache cache;
  BlockPool pool;
  BlockTables tables;
  SequenceSlab sequences;
  std::vector<TenantQueue> queues;     // by tenant
  std::vector<SequenceIndex> running;  // oldest first
  std::vector<Slot> slots;
  JobLog jobs;
  StepDraft draft;
  std::vector<StepPlan> plans;  // a ring: one more than may be in flight
  std::vector<FinishEvent> finished;

  // What a plan may still carry of histories and table entries, so that its arrays have a bound.
  std::int32_t history_room_tokens = 0;
  std::int32_t table_room_entries = 0;

  std::uint64_t incarnations = 0;
  std::int64_t num_steps = 0;
  SchedulerStats counters;  // only the totals; the gauges are read from the parts
  BlockStepTotals block_steps;

  // Scratch, reserved once.
  std::vector<base::BlockId> hits;
  std::vector<BlockRef> taken;
  std::vector<SequenceIndex> snapshot;

  TenantQueue& QueueOf(const Sequence& sequence) {
    return queues[sequence.request->tenant.value()];
  }
  std::int32_t block_size() const { return config.block_size; }
  std::int32_t HistoryRoom() const;
};

}  // namespace pagoda::scheduler
