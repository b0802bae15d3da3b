#pragma once

#include <span>

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// What the end of a job does: Scheduler::Complete, Fail and RequestFor.
void CompleteJob(SchedulerState& state, const StepResult& result,
                 std::span<const SampleOutcome> outcomes);
void FailJob(SchedulerState& state, base::JobId job);
std::optional<ScorePlace> PlaceOfScore(const SchedulerState& state, const ScoreResult& score);
std::optional<base::RequestId> RequestForSample(const SchedulerState& state,
                                                const SampleResult& sample);

}  // namespace pagoda::scheduler
