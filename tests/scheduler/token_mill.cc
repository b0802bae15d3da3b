#include "tests/scheduler/token_mill.h"

#include <utility>

#include "base/check.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr std::uint32_t kVocabulary = 1'000'000;

}  // namespace

TokenMill::TokenMill(const SchedulerConfig& config) : config_(config) {
  PAGODA_CHECK(CheckConfig(config).ok());
  auto state = std::make_unique<SchedulerState>(config);
  state_ = state.get();
  scheduler_ = std::make_unique<Scheduler>(std::move(state));
}

base::RequestId TokenMill::Add(std::uint32_t tenant, base::TokenId first,
                               std::int32_t prompt_length, std::int32_t max_tokens) {
  RequestSketch sketch;
  sketch.id = ++num_added_;
  sketch.tenant = tenant;
  sketch.prompt = Ascending(first, static_cast<std::size_t>(prompt_length));
  sketch.fields.max_tokens = max_tokens;
  auto request = MakeRequest(sketch, LimitsFor(config_, kVocabulary, tenant), config_,
                             scheduler_->epoch(base::TenantId(tenant)));
  PAGODA_CHECK(request.ok());
  scheduler_->Add(*std::move(request));
  return base::RequestId(num_added_);
}

void TokenMill::Answer(const SampleRequest& sample) {
  const Range token{static_cast<std::uint32_t>(result_.tokens.size()), 1};
  result_.tokens.push_back(sample.position);
  result_.samples.push_back({sample.slot, sample.slot_generation, sample.choice, sample.position,
                             token,
                             /*scores=*/{},
                             /*finite=*/true});
  SampleOutcome& outcome = outcomes_.emplace_back(SampleOutcome{1, std::nullopt});
  const auto id = scheduler_->RequestFor(result_.samples.back());
  if (!id.has_value()) return;
  const NewRequest& request = scheduler_->request(*id);
  const std::int32_t length = request.choice(sample.choice).num_known() + 1;
  if (length == request.prompt_length() + 1) started_.push_back(*id);
  if (length == request.prompt_length() + request.max_tokens()) {
    outcome.finish = FinishReason::kLength;
  }
}

bool TokenMill::Step() {
  finished_.clear();
  started_.clear();
  const StepPlan* plan = scheduler_->TryPlan(base::Instant());
  if (plan == nullptr) return false;
  ++num_steps_;
  result_.job = plan->job;
  result_.samples.clear();
  result_.tokens.clear();
  outcomes_.clear();
  for (const SampleRequest& sample : plan->samples) Answer(sample);
  scheduler_->Complete(result_, outcomes_);
  scheduler_->Fence(plan->job);
  scheduler_->TakeFinished(finished_);
  return true;
}

}  // namespace pagoda::scheduler::testing
