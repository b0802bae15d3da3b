#include "tests/fakes/failing_executor.h"

#include <utility>

namespace pagoda::fakes {

FailingExecutor::FailingExecutor(std::unique_ptr<engine::Executor> inner, Where where, Fails fails,
                                 Spoil spoil)
    : inner_(std::move(inner)), where_(where), fails_(std::move(fails)), spoil_(std::move(spoil)) {}

FailingExecutor::Fails FailingExecutor::EveryNth(std::int64_t n) {
  return [n](std::int64_t step, const scheduler::StepPlan&) { return step % n == n - 1; };
}

absl::Status FailingExecutor::Submit(const scheduler::StepPlan& plan) {
  const bool fails = fails_(next_step_++, plan);
  if (fails) ++num_failed_;
  if (fails && where_ == Where::kSubmit) return absl::InternalError("the test fails this step");
  pending_.push_back({.plan = &plan, .fails = fails});
  return inner_->Submit(plan);
}

absl::StatusOr<const scheduler::StepResult*> FailingExecutor::Await() {
  const Pending oldest = pending_.front();
  pending_.pop_front();
  auto result = inner_->Await();
  if (!oldest.fails) return result;
  if (spoil_) spoil_(*oldest.plan);
  return absl::InternalError("the test fails this step");
}

}  // namespace pagoda::fakes
