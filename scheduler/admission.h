#pragma once

#include "scheduler/scheduler_state.h"
#include "scheduler/step_budget.h"

namespace pagoda::scheduler {

// A preempted request that was preempted this often is readmitted only with room to get somewhere.
inline constexpr std::int32_t kPreemptionsBeforeReserve = 3;

// Whether the head of the queue could be given its slots and all blocks it needs now. Changes
// nothing.
bool CanAdmit(SchedulerState& state, RequestIndex index, const StepBudget& budget);
// Gives each open choice a slot, the cached blocks of its prefix and blocks for the rest of its
// known tokens. Never preempts. The caller plans its first tokens. False, with nothing changed: not
// now; one that needs several slots is never given some of them.
bool TryAdmit(SchedulerState& state, RequestIndex index, const StepBudget& budget);

}  // namespace pagoda::scheduler
