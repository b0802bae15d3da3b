#pragma once

#include "base/instant.h"
#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// Makes one plan, or none (Scheduler::TryPlan).
const StepPlan* MakePlan(SchedulerState& state, base::Instant now);

// Turns the draft into a submitted job and its plan. Null when the draft is empty.
const StepPlan* CommitDraft(SchedulerState& state);

}  // namespace pagoda::scheduler
