#include "tests/scheduler/solo_oracle.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr base::SlotId kSlot{0};
constexpr base::KvGroupId kGroup{0};

void AddWork(StepPlan& plan, std::uint32_t first, std::span<const base::TokenId> tokens,
             std::uint32_t choice) {
  WorkItem item;
  item.slot = kSlot;
  item.first_position = first;
  item.tokens = {0, static_cast<std::uint32_t>(tokens.size())};
  for (const base::TokenId token : tokens) plan.plan_tokens.push_back({token, false});
  item.appended_blocks = {0, static_cast<std::uint32_t>(plan.block_appends.size())};
  plan.work.push_back(item);
  const auto count = static_cast<std::uint32_t>(tokens.size());
  plan.rows.push_back({0, count - 1});
  plan.samples.push_back(
      {.row = 0, .slot = kSlot, .slot_generation = 1, .choice = choice, .position = first + count});
}

}  // namespace

SoloOracle::SoloOracle(std::int32_t block_size, std::int32_t max_length,
                       base::TokenId vocabulary_size)
    : block_size_(block_size),
      num_blocks_(base::DivUp(max_length, block_size)),
      executor_({.pool_blocks_per_group = {num_blocks_ + 1},
                 .block_size = block_size,
                 .max_num_seqs = 1,
                 .max_model_len = max_length,
                 .vocabulary_size = vocabulary_size}) {}

std::vector<base::TokenId> SoloOracle::Answer(std::span<const base::TokenId> prompt,
                                              const base::SamplingParams& sampling,
                                              std::size_t num_tokens, std::uint32_t choice) {
  StepPlan first;
  first.closed.push_back(kSlot);
  SlotOpening opening;
  opening.slot = kSlot;
  opening.slot_generation = 1;
  opening.sampling = sampling;
  opening.num_prompt_tokens = static_cast<std::uint32_t>(prompt.size());
  opening.history = {0, static_cast<std::uint32_t>(prompt.size())};
  first.tokens.assign(prompt.begin(), prompt.end());
  first.opened.push_back(opening);
  const auto length = static_cast<std::int32_t>(prompt.size() + num_tokens);
  const std::int32_t num_blocks = std::min(num_blocks_, base::DivUp(length, block_size_));
  for (std::int32_t i = 1; i <= num_blocks; ++i) {
    const base::BlockId block(static_cast<std::uint32_t>(i));
    first.memory_effects.push_back({MemoryEffect::Kind::kZero, static_cast<std::uint32_t>(i - 1)});
    first.zeros.push_back({kGroup, block});
    first.block_appends.push_back({kGroup, block, -1});
  }
  AddWork(first, 0, prompt, choice);
  std::vector<base::TokenId> answer = {Step(first)};
  while (answer.size() < num_tokens) {
    StepPlan plan;
    const auto position = static_cast<std::uint32_t>(prompt.size() + answer.size() - 1);
    AddWork(plan, position, std::span(answer).last(1), choice);
    answer.push_back(Step(plan));
  }
  return answer;
}

base::TokenId SoloOracle::Step(const StepPlan& plan) {
  PAGODA_CHECK(executor_.Submit(plan).ok());
  const auto result = executor_.Await();
  PAGODA_CHECK(result.ok());
  return (*result)->tokens.front();
}

}  // namespace pagoda::scheduler::testing
