#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "engine/executor.h"

namespace pagoda::fakes {

// Another executor whose steps fail when a test says so, by the number of the step (0, 1, ... in
// order of submission). Threads: one at a time.
class FailingExecutor final : public engine::Executor {
 public:
  enum class Where : std::uint8_t {
    kSubmit,  // the step never reaches the other executor
    kAwait,   // it ran; its result is lost
  };
  using Fails = std::function<bool(std::int64_t step, const scheduler::StepPlan& plan)>;
  // What a failed step leaves behind; only for kAwait.
  using Spoil = std::function<void(const scheduler::StepPlan& plan)>;

  FailingExecutor(std::unique_ptr<engine::Executor> inner, Where where, Fails fails,
                  Spoil spoil = {});

  // Fails every n-th step.
  static Fails EveryNth(std::int64_t n);

  absl::Status Submit(const scheduler::StepPlan& plan) override;
  absl::StatusOr<const scheduler::StepResult*> Await() override;
  int max_in_flight() const override { return inner_->max_in_flight(); }

  std::int64_t num_failed() const { return num_failed_; }

 private:
  struct Pending {
    const scheduler::StepPlan* plan = nullptr;
    bool fails = false;
  };

  const std::unique_ptr<engine::Executor> inner_;
  const Where where_;
  const Fails fails_;
  const Spoil spoil_;
  std::deque<Pending> pending_;
  std::int64_t next_step_ = 0;
  std::int64_t num_failed_ = 0;
};

}  // namespace pagoda::fakes
