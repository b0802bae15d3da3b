#include "tests/fakes/digest_executor.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/failing_executor.h"

namespace pagoda::fakes {
namespace {

using base::BlockId;
using base::SlotId;
using base::TokenId;
using scheduler::StepPlan;

constexpr base::KvGroupId kGroup{0};

// A plan that opens one row, zeroes `fresh` blocks, appends `blocks` and computes `tokens` from
// `first` on; the last one samples.
struct PlanSpec {
  std::vector<TokenId> history;
  std::vector<std::uint32_t> fresh = {};
  std::vector<std::uint32_t> blocks = {};
  std::uint32_t first = 0;
  std::uint32_t num_without_kv = 0;
};

StepPlan MakePlan(std::uint64_t job, const PlanSpec& spec) {
  StepPlan plan;
  plan.job = base::JobId(job);
  plan.tokens = spec.history;
  plan.closed.push_back(SlotId(0));
  plan.opened.push_back({.slot = SlotId(0),
                         .sampling = {},
                         .num_prompt_tokens = 1,
                         .history = {0, static_cast<std::uint32_t>(spec.history.size())},
                         .logit_bias = {},
                         .stop_token_ids = {},
                         .bad_words = {},
                         .allowed_words = {},
                         .logprob_token_ids = {}});
  for (const std::uint32_t block : spec.fresh) {
    plan.memory_effects.push_back(
        {scheduler::MemoryEffect::Kind::kZero, static_cast<std::uint32_t>(plan.zeros.size())});
    plan.zeros.push_back({kGroup, BlockId(block)});
  }
  for (const std::uint32_t block : spec.blocks)
    plan.block_appends.push_back({kGroup, BlockId(block)});
  for (std::size_t p = spec.first; p < spec.history.size(); ++p) {
    plan.plan_tokens.push_back({spec.history[p]});
  }
  const auto count = static_cast<std::uint32_t>(plan.plan_tokens.size());
  plan.work.push_back({.slot = SlotId(0),
                       .first_position = spec.first,
                       .tokens = {0, count},
                       .num_without_kv = spec.num_without_kv,
                       .appended_blocks = {0, static_cast<std::uint32_t>(spec.blocks.size())}});
  plan.rows.push_back({0, count - 1});
  plan.samples.push_back({.slot = SlotId(0), .position = spec.first + count});
  return plan;
}

TokenId RunOne(DigestExecutor& executor, const StepPlan& plan) {
  EXPECT_TRUE(executor.Submit(plan).ok());
  const auto result = executor.Await();
  EXPECT_TRUE(result.ok());
  return (*result)->tokens.at(0);
}

DigestExecutor MakeExecutor() {
  return DigestExecutor({.pool_blocks_per_group = {16},
                         .block_size = 4,
                         .max_num_seqs = 2,
                         .max_model_len = 32,
                         .vocabulary_size = 1'000'000});
}

TEST(DigestExecutor, GivesTheSameTokenWhateverBlocksHoldTheContext) {
  DigestExecutor executor = MakeExecutor();
  const TokenId first = RunOne(
      executor, MakePlan(1, {.history = {5, 6, 7, 8, 9}, .fresh = {1, 2}, .blocks = {1, 2}}));
  const TokenId second = RunOne(
      executor, MakePlan(2, {.history = {5, 6, 7, 8, 9}, .fresh = {9, 3}, .blocks = {9, 3}}));
  EXPECT_EQ(first, second);
  EXPECT_EQ(executor.num_dirty_slots(), 0);
}

TEST(DigestExecutor, GivesTheSameTokenForAHitAsForAColdPrompt) {
  DigestExecutor executor = MakeExecutor();
  const TokenId cold = RunOne(
      executor, MakePlan(1, {.history = {5, 6, 7, 8, 9}, .fresh = {1, 2}, .blocks = {1, 2}}));
  const TokenId hit =
      RunOne(executor,
             MakePlan(2, {.history = {5, 6, 7, 8, 9}, .fresh = {3}, .blocks = {1, 3}, .first = 4}));
  EXPECT_EQ(cold, hit);
}

TEST(DigestExecutor, AFullHitThatRecomputesOneTokenWithoutItsKvGivesTheSameToken) {
  DigestExecutor executor = MakeExecutor();
  const TokenId cold =
      RunOne(executor, MakePlan(1, {.history = {5, 6, 7, 8}, .fresh = {1}, .blocks = {1}}));
  const TokenId hit = RunOne(
      executor,
      MakePlan(2, {.history = {5, 6, 7, 8}, .blocks = {1}, .first = 3, .num_without_kv = 1}));
  EXPECT_EQ(cold, hit);
}

TEST(DigestExecutor, AForeignBlockChangesTheToken) {
  DigestExecutor executor = MakeExecutor();
  const TokenId good = RunOne(
      executor, MakePlan(1, {.history = {5, 6, 7, 8, 9}, .fresh = {1, 2}, .blocks = {1, 2}}));
  RunOne(executor, MakePlan(2, {.history = {5, 6, 7, 4, 9}, .fresh = {3, 4}, .blocks = {3, 4}}));
  const TokenId foreign =
      RunOne(executor,
             MakePlan(3, {.history = {5, 6, 7, 8, 9}, .fresh = {5}, .blocks = {3, 5}, .first = 4}));
  EXPECT_NE(good, foreign);
}

TEST(DigestExecutor, ABlockThatWasNotScrubbedIsCountedAndChangesTheToken) {
  DigestExecutor executor = MakeExecutor();
  const TokenId good =
      RunOne(executor, MakePlan(1, {.history = {5, 6}, .fresh = {1}, .blocks = {1}}));
  const TokenId dirty = RunOne(executor, MakePlan(2, {.history = {5, 6}, .blocks = {2}}));
  EXPECT_NE(good, dirty);
  EXPECT_EQ(executor.num_dirty_slots(), 2);
}

TEST(DigestExecutor, WhatAFailedStepSpoiledChangesTheToken) {
  DigestExecutor executor = MakeExecutor();
  const StepPlan plan =
      MakePlan(1, {.history = {5, 6, 7, 8, 9}, .fresh = {1, 2}, .blocks = {1, 2}});
  const TokenId good = RunOne(executor, plan);
  executor.Spoil(plan);
  const TokenId spoiled =
      RunOne(executor,
             MakePlan(2, {.history = {5, 6, 7, 8, 9}, .fresh = {3}, .blocks = {1, 3}, .first = 4}));
  EXPECT_NE(good, spoiled);
}

// The step gave the row a block and filled none of its slots.
TEST(DigestExecutor, AFailedStepLeavesGarbageInWhatItZeroedToo) {
  DigestExecutor executor = MakeExecutor();
  const StepPlan plan = MakePlan(1, {.history = {5, 6}, .fresh = {1, 2}, .blocks = {1, 2}});
  const TokenId good = RunOne(executor, plan);
  executor.Spoil(plan);
  EXPECT_NE(good, RunOne(executor, MakePlan(2, {.history = {5, 6}, .blocks = {2}})));
  EXPECT_EQ(executor.num_dirty_slots(), 2);
}

// The later step gives the row to a choice that waits for its prompt; it is spoiled first.
TEST(DigestExecutor, AFailedStepTouchesNoRowThatALaterOneOpened) {
  DigestExecutor executor = MakeExecutor();
  const StepPlan first = MakePlan(1, {.history = {5, 6}, .fresh = {1}, .blocks = {1}});
  RunOne(executor, first);
  StepPlan second = MakePlan(2, {.history = {7, 8}});
  second.work.clear();
  second.rows.clear();
  second.samples.clear();
  ASSERT_TRUE(executor.Submit(second).ok());
  ASSERT_TRUE(executor.Await().ok());
  executor.Spoil(second);
  executor.Spoil(first);
}

TEST(DigestExecutorDeathTest, ARowIsClosedBeforeItIsOpenedAgain) {
  DigestExecutor executor = MakeExecutor();
  StepPlan plan = MakePlan(1, {.history = {5, 6}, .fresh = {1}, .blocks = {1}});
  RunOne(executor, plan);
  plan.closed.clear();
  EXPECT_DEATH(RunOne(executor, plan), "a row is opened that was not closed");
}

TEST(FailingExecutor, FailsEveryNthStepAndPassesTheOthersOn) {
  FailingExecutor executor(std::make_unique<DigestExecutor>(MakeExecutor()),
                           FailingExecutor::Where::kAwait, FailingExecutor::EveryNth(2));
  const StepPlan plan = MakePlan(1, {.history = {5}, .fresh = {1}, .blocks = {1}});
  for (const bool good : {true, false, true, false}) {
    ASSERT_TRUE(executor.Submit(plan).ok());
    EXPECT_EQ(executor.Await().ok(), good);
  }
  EXPECT_EQ(executor.num_failed(), 2);
}

}  // namespace
}  // namespace pagoda::fakes
