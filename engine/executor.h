#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/step_plan.h"

namespace pagoda::engine {

// Runs steps: on the model (ModelExecutor) or, in tests, on a stand-in. Steps finish in the order
// they were submitted. Owner and thread: the engine thread.
class Executor {
 public:
  virtual ~Executor() = default;

  // Starts the step. Does not wait for it. An error means that nothing of it was or will be done.
  virtual absl::Status Submit(const scheduler::StepPlan& plan) = 0;

  // Waits for the oldest submitted step. The result is valid until the next Await. An error means
  // that the step left nothing usable in memory or rows; its effects are over (it may be fenced).
  virtual absl::StatusOr<const scheduler::StepResult*> Await() = 0;

  // Submitted steps that may be unfinished at once: 1 on a CPU.
  virtual int max_in_flight() const = 0;
};

}  // namespace pagoda::engine
