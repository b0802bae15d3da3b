#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "scheduler/scheduler_state.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler::testing {

// A scheduler over a model that computes nothing: every token is its position. One step at a time
// is planned, completed and fenced, for tests that count steps and shares of many requests.
class TokenMill {
 public:
  explicit TokenMill(const SchedulerConfig& config);

  // Ascending prompt tokens from `first`; ends by length. Returns its id.
  base::RequestId Add(std::uint32_t tenant, base::TokenId first, std::int32_t prompt_length,
                      std::int32_t max_tokens);
  // False: nothing could be planned.
  bool Step();
  // The requests that ended in the last step.
  const std::vector<FinishEvent>& finished() const { return finished_; }
  // Requests that got their first token in the last step.
  const std::vector<base::RequestId>& started() const { return started_; }

  std::int64_t num_steps() const { return num_steps_; }
  Scheduler& scheduler() { return *scheduler_; }
  SchedulerState& state() { return *state_; }

 private:
  void Answer(const SampleRequest& sample);

  SchedulerConfig config_;
  SchedulerState* state_ = nullptr;  // scheduler_'s
  std::unique_ptr<Scheduler> scheduler_;
  StepResult result_;
  std::vector<SampleOutcome> outcomes_;
  std::vector<FinishEvent> finished_;
  std::vector<base::RequestId> started_;
  std::uint64_t num_added_ = 0;
  std::int64_t num_steps_ = 0;
};

}  // namespace pagoda::scheduler::testing
