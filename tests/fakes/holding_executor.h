#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/runtime/mutex.h"
#include "engine/executor.h"

namespace pagoda::fakes {

// Another executor that a test can stop between a step's submission and its completion.
// Threads: Submit and Await from the engine's; the rest from any.
class HoldingExecutor final : public engine::Executor {
 public:
  explicit HoldingExecutor(std::unique_ptr<engine::Executor> inner) : inner_(std::move(inner)) {}

  // From now on every Await waits until Release.
  void Hold() PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    holding_ = true;
  }
  void Release() PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    holding_ = false;
    changed_.NotifyAll();
  }
  // Returns when the engine is held in an Await.
  void WaitUntilHeld() PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    while (!held_) changed_.Wait(mutex_);
  }

  absl::Status Submit(const scheduler::StepPlan& plan) override { return inner_->Submit(plan); }
  absl::StatusOr<const scheduler::StepResult*> Await() override PAGODA_EXCLUDES(mutex_) {
    {
      base::MutexLock lock(mutex_);
      held_ = holding_;
      changed_.NotifyAll();
      while (holding_) changed_.Wait(mutex_);
      held_ = false;
    }
    return inner_->Await();
  }
  int max_in_flight() const override { return inner_->max_in_flight(); }

 private:
  const std::unique_ptr<engine::Executor> inner_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool holding_ PAGODA_GUARDED_BY(mutex_) = false;
  bool held_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::fakes
