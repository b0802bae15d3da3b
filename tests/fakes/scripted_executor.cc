#include "tests/fakes/scripted_executor.h"

#include "base/check.h"

namespace pagoda::fakes {

using scheduler::SampleRequest;
using scheduler::StepPlan;
using scheduler::StepResult;

ScriptedExecutor::ScriptedExecutor(std::int32_t max_num_seqs, int max_in_flight)
    : max_in_flight_(max_in_flight),
      rows_(static_cast<std::size_t>(max_num_seqs)),
      results_(static_cast<std::size_t>(max_in_flight) + 1) {
  for (StepResult& result : results_) {
    result.samples.reserve(static_cast<std::size_t>(max_num_seqs));
    result.tokens.reserve(static_cast<std::size_t>(max_num_seqs));
  }
}

void ScriptedExecutor::Script(std::uint64_t seed, std::vector<base::TokenId> reply) {
  scripts_[seed] = std::move(reply);
}

void ScriptedExecutor::MakeNonFinite(std::uint64_t seed, std::size_t index) {
  not_finite_.insert({seed, index});
}

absl::Status ScriptedExecutor::Submit(const StepPlan& plan) {
  PAGODA_CHECK(num_submitted_ - num_awaited_ < max_in_flight_);
  StepResult& result = results_[static_cast<std::size_t>(num_submitted_) % results_.size()];
  ++num_submitted_;
  result.job = plan.job;
  result.samples.clear();
  result.tokens.clear();
  for (const scheduler::SlotOpening& opening : plan.opened) {
    rows_[opening.slot.value()] = {.seed = opening.sampling.seed,
                                   .num_prompt_tokens = opening.num_prompt_tokens};
  }
  for (const SampleRequest& request : plan.samples) Draw(request, result);
  return absl::OkStatus();
}

void ScriptedExecutor::Draw(const SampleRequest& request, StepResult& result) const {
  const Row& row = rows_[request.slot.value()];
  PAGODA_CHECK(request.position >= row.num_prompt_tokens);
  const std::size_t index = request.position - row.num_prompt_tokens;
  const auto script = scripts_.find(row.seed);
  const bool scripted = script != scripts_.end() && index < script->second.size();
  const bool finite = !not_finite_.contains({row.seed, index});
  result.samples.push_back({.slot = request.slot,
                            .slot_generation = request.slot_generation,
                            .choice = request.choice,
                            .position = request.position,
                            .tokens = {.begin = static_cast<std::uint32_t>(result.tokens.size()),
                                       .count = finite ? 1u : 0u},
                            .scores = {},
                            .finite = finite});
  if (finite) result.tokens.push_back(scripted ? script->second[index] : kPastScript);
}

absl::StatusOr<const StepResult*> ScriptedExecutor::Await() {
  PAGODA_CHECK(num_awaited_ < num_submitted_);
  return &results_[static_cast<std::size_t>(num_awaited_++) % results_.size()];
}

}  // namespace pagoda::fakes
