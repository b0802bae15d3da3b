#pragma once

#include <vector>

#include "absl/status/status.h"
#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// Scheduler::Reconfigure: what was asked for waits until everything that is held, runs or was let
// in fits it. Meanwhile no admission makes that take longer (admission.cc), and what is running
// ends, so the time comes.
absl::Status AskForTenants(SchedulerState& state, std::vector<TenantConfig> tenants);
// At the start of a plan.
void TryReconfigure(SchedulerState& state);

// Writes down what follows from the tenants' configs. Requires: the pool has their shares.
void SetFloors(SchedulerState& state);

}  // namespace pagoda::scheduler
