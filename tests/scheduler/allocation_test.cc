// Counts heap allocations of this process: a steady step makes none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "base/check.h"
#include "scheduler/scheduler.h"
#include "tests/scheduler/requests.h"

namespace {
std::int64_t num_allocations = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++num_allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pagoda::scheduler::testing {
namespace {

// Prefill, decode, growth, preemption, finish and admission, with all requests made before the
// count begins; of all tenants in turn.
void RunAllWithoutAllocating(const SchedulerConfig& config) {
  auto scheduler = *Scheduler::Create(config);
  const auto num_tenants =
      static_cast<std::uint32_t>(std::max<std::size_t>(1, config.tenants.size()));
  std::vector<NewRequest> requests;
  for (std::uint32_t id = 1; id <= 40; ++id) {
    RequestSketch sketch;
    sketch.id = id;
    sketch.tenant = id % num_tenants;
    sketch.prompt = Ascending(id % 5, 5 + id % 11);
    sketch.fields.max_tokens = static_cast<std::int32_t>(4 + id % 13);
    sketch.fields.n = id % 4 == 0 ? 2 : 1;
    const ModelLimits limits = LimitsFor(config, 1'000, sketch.tenant);
    requests.push_back(*MakeRequest(sketch, limits, config, 0));
  }
  std::vector<FinishEvent> finished;
  finished.reserve(64);
  StepResult result;
  result.samples.reserve(16);
  result.tokens.reserve(16);
  std::vector<SampleOutcome> outcomes;
  outcomes.reserve(16);

  const std::int64_t before = num_allocations;
  for (NewRequest& request : requests) scheduler->Add(std::move(request));
  while (const StepPlan* plan = scheduler->TryPlan(base::Instant())) {
    result.job = plan->job;
    result.samples.clear();
    result.tokens.clear();
    outcomes.clear();
    for (const SampleRequest& sample : plan->samples) {
      result.samples.push_back({sample.slot,
                                sample.slot_generation,
                                sample.choice,
                                sample.position,
                                {static_cast<std::uint32_t>(result.tokens.size()), 1},
                                {},
                                true});
      result.tokens.push_back(sample.position % 1'000);
      SampleOutcome& outcome = outcomes.emplace_back(SampleOutcome{1, std::nullopt});
      const auto id = scheduler->RequestFor(result.samples.back());
      if (!id.has_value()) continue;
      const NewRequest& request = scheduler->request(*id);
      const std::int32_t length = request.choice(sample.choice).num_known() + 1;
      if (length == request.prompt_length() + request.max_tokens()) {
        outcome.finish = FinishReason::kLength;
      }
    }
    scheduler->Complete(result, outcomes);
    scheduler->Fence(plan->job);
    scheduler->TakeFinished(finished);
  }
  EXPECT_EQ(num_allocations - before, 0);
  EXPECT_EQ(finished.size(), 40u);
  EXPECT_GT(scheduler->stats().num_preemptions, 0);
}

TEST(SchedulerAllocation, NothingIsAllocatedBetweenAddAndTakeFinished) {
  RunAllWithoutAllocating(SmallConfig(24, 4, 6));
}

TEST(SchedulerAllocation, NothingIsAllocatedWithSeveralTenants) {
  SchedulerConfig config = SmallConfig(40, 4, 6);
  config.tenants.resize(3);
  config.tenants[1].reserve_blocks = 4;
  config.tenants[2].reserve_blocks = 14;
  config.tenants[2].isolated = true;
  RunAllWithoutAllocating(config);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
