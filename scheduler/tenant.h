#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/scheduler_config.h"
#include "scheduler/sequence.h"
#include "scheduler/tenant_config.h"

namespace pagoda::scheduler {

// One tenant's part of the scheduler's state, beside its queue and its account in the pool. Owner:
// SchedulerState.
struct Tenant {
  TenantConfig config;
  StepFloors floors;
  std::int64_t counter = 0;  // fair_counters.h
  TenantStats counts;        // only the totals; the gauges are read from the parts

  // Kept by lifecycle.cc.
  std::int32_t num_slots = 0;    // taken by its sequences
  std::int32_t num_running = 0;  // requests
  std::int32_t num_new = 0;      // requests that wait and were never admitted

  // Of the plan in the making.
  StepBudget floor_left;
  std::int32_t items_left = 0;    // sequences that may still get a first token within the floors
  std::int32_t decodes_left = 0;  // sequences that are still to get their one token
  std::int32_t prefill_share = 0;
  std::int64_t charge_of_decode = 0;  // of one token
  // What the plan may still carry of its histories and table entries, so that the plan's arrays
  // have a bound, and nobody's use of it is felt by another.
  std::int32_t history_room_tokens = 0;
  std::int32_t table_room_entries = 0;
  std::int32_t num_handed_out = 0;  // blocks; never more than its capacity
  // The head of its queue and the blocks it would pin, as they were when first asked for.
  std::optional<RequestIndex> judged_head;
  std::int32_t head_need_blocks = 0;
  bool is_eligible = false;
  bool is_refused = false;  // in this pass
  // Its running requests at the start of the plan: the oldest that is not paused, and the oldest of
  // those that has something left to plan.
  std::optional<RequestIndex> oldest, oldest_runnable;
  std::uint64_t oldest_incarnation = 0;  // of oldest_runnable
  // A request older than oldest_runnable, of this tenant or of any, is not paused and has nothing
  // left to plan: it ends by itself, and until then keeps its blocks from those younger than it.
  bool waits_for_own_older = false, waits_for_any_older = false;

  bool is_elastic() const { return !config.isolated; }
};

}  // namespace pagoda::scheduler
