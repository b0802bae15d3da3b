#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/engine_world.h"
#include "tests/fakes/failing_executor.h"

// The same request gives the same tokens whatever runs beside it and whatever befalls it. The
// digest executor shows any wrong byte of KV as another token; what a request gives alone in a
// fresh world is the oracle.

namespace pagoda::engine {
namespace {

using fakes::DigestExecutor;
using fakes::DigestOptions;
using fakes::FailingExecutor;
using scheduler::FinishReason;

constexpr std::uint64_t kSeed = 20'240;

void ExpectSolo(EngineWorld& world, const std::vector<Ask>& asks) {
  for (const Ask& ask : asks) {
    EXPECT_EQ(world.reply(ask.id).reason, FinishReason::kLength) << "request " << ask.id;
    EXPECT_EQ(world.reply(ask.id).tokens, SoloReply(ask)) << "request " << ask.id;
  }
}

void RunAll(EngineWorld& world, const std::vector<Ask>& asks) {
  for (const Ask& ask : asks) world.Submit(ask);
  world.RunUntilIdle();
}

struct Shape {
  const char* name;
  WorldConfig config;
  bool must_preempt = false;
};

class EveryShape : public testing::TestWithParam<Shape> {};

TEST_P(EveryShape, RequestsTogetherGiveWhatEachGivesAlone) {
  std::cerr << "seed " << kSeed << "\n";
  auto digest = MakeDigest(GetParam().config);
  const DigestExecutor& executor = *digest;
  EngineWorld world(GetParam().config, std::move(digest));
  const std::vector<Ask> asks = MakeAsks(32, kSeed);
  RunAll(world, asks);
  ExpectSolo(world, asks);
  EXPECT_EQ(executor.num_dirty_slots(), 0);
  EXPECT_TRUE(world.AllReturned());
  EXPECT_EQ(world.scheduler().stats().num_preemptions > 0, GetParam().must_preempt);
}

// Scores of prompts come once, in order, whatever is preempted while they are in flight, and those
// of a solo run.
TEST_P(EveryShape, ScoresOfPromptsAreThoseOfASoloRun) {
  WorldConfig config = GetParam().config;
  config.max_logit_rows = 11;
  auto digest = MakeDigest(config);
  EngineWorld world(config, std::move(digest));
  std::vector<Ask> asks = MakeAsks(32, kSeed + 3);
  for (std::size_t i = 0; i < asks.size(); i += 2) asks[i].prompt_logprobs = 0;
  RunAll(world, asks);
  ExpectSolo(world, asks);
  for (const Ask& ask : asks) {
    EngineWorld solo({}, MakeDigest({}));
    solo.Submit(ask);
    solo.RunUntilIdle();
    const auto wanted = solo.reply(ask.id).prompt_scores;
    const auto found = world.reply(ask.id).prompt_scores;
    EXPECT_EQ(wanted.size(), ask.prompt_logprobs.has_value() ? ask.prompt.size() - 1 : 0);
    ASSERT_EQ(found.size(), wanted.size()) << ask.id;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].of.token, ask.prompt[i + 1]);
      EXPECT_EQ(found[i].of.logprob, wanted[i].of.logprob) << ask.id << ", token " << i + 1;
    }
  }
  EXPECT_TRUE(world.AllReturned());
}

INSTANTIATE_TEST_SUITE_P(
    Engine, EveryShape,
    testing::Values(Shape{"Roomy", {}}, Shape{"SmallBudget", {.budget_tokens = 12}},
                    Shape{"OneAtATime", {.max_num_seqs = 1}},
                    Shape{"TightPool", {.pool_blocks = 28}, true},
                    Shape{"TwoInFlight", {.max_in_flight = 2}},
                    Shape{"TwoInFlightLate",
                          {.max_in_flight = 2, .timing = DigestOptions::Timing::kAtAwait}},
                    Shape{"TightPoolTwoInFlightLate",
                          {.pool_blocks = 28,
                           .budget_tokens = 16,
                           .max_in_flight = 2,
                           .timing = DigestOptions::Timing::kAtAwait},
                          true}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(EngineEqualities, AHitGivesWhatAColdPromptGives) {
  EngineWorld world({}, MakeDigest({}));
  std::vector<Ask> asks = MakeAsks(8, kSeed);
  RunAll(world, asks);
  const std::int64_t cached_before = world.scheduler().stats().cached_tokens;
  for (Ask& ask : asks) ask.id += 100;
  RunAll(world, asks);
  EXPECT_GT(world.scheduler().stats().cached_tokens, cached_before);
  ExpectSolo(world, asks);
}

TEST(EngineEqualities, ThirtyTwoRequestsAreUnchangedWhileTenOfThemAreCancelled) {
  for (const int max_in_flight : {1, 2}) {
    const WorldConfig config{.pool_blocks = 40, .max_in_flight = max_in_flight};
    EngineWorld world(config, MakeDigest(config));
    const std::vector<Ask> asks = MakeAsks(32, kSeed + 1);
    for (const Ask& ask : asks) world.Submit(ask);
    for (std::uint64_t victim = 3; victim <= 30; victim += 3) {
      world.Turn();
      world.Cancel(victim);
    }
    world.RunUntilIdle();
    int num_cancelled = 0;
    for (const Ask& ask : asks) {
      const auto reply = world.reply(ask.id);
      const std::vector<base::TokenId> solo = SoloReply(ask);
      ASSERT_LE(reply.tokens.size(), solo.size());
      EXPECT_TRUE(std::equal(reply.tokens.begin(), reply.tokens.end(), solo.begin())) << ask.id;
      if (reply.reason == FinishReason::kCancelled) {
        ++num_cancelled;
        continue;
      }
      EXPECT_EQ(reply.tokens.size(), solo.size()) << ask.id;
    }
    EXPECT_GT(num_cancelled, 5);
    EXPECT_TRUE(world.AllReturned());
  }
}

TEST(EngineEqualities, RequestsWhoseStepsFailNowAndThenGiveTheSameTokens) {
  for (const auto where : {FailingExecutor::Where::kSubmit, FailingExecutor::Where::kAwait}) {
    for (const int max_in_flight : {1, 2}) {
      const WorldConfig config{.max_in_flight = max_in_flight};
      auto digest = MakeDigest(config);
      DigestExecutor& executor = *digest;
      // Good steps between failures give a request its retries back.
      EngineWorld world(config, std::make_unique<FailingExecutor>(
                                    std::move(digest), where, FailingExecutor::EveryNth(7),
                                    [&executor](const auto& plan) { executor.Spoil(plan); }));
      const std::vector<Ask> asks = MakeAsks(12, kSeed + 2);
      RunAll(world, asks);
      EXPECT_GT(world.loop().stats().failed_steps, 0);
      ExpectSolo(world, asks);
      EXPECT_TRUE(world.AllReturned());
    }
  }
}

TEST(EngineEqualities, ChoicesEndApartAndTheirRequestEndsOnceWithTheLastOfThem) {
  for (const int max_in_flight : {1, 2}) {
    const WorldConfig config{.max_in_flight = max_in_flight};
    EngineWorld world(config, MakeDigest(config));
    Ask ask{.prompt = {1, 2, 3, 4, 5}, .max_tokens = 40, .n = 4};
    for (base::TokenId token = 0; token < kEos; token += 9) ask.stop_token_ids.push_back(token);
    world.Submit(ask);
    world.RunUntilIdle();
    EXPECT_EQ(world.sink().num_finished(), 1u);
    std::set<std::size_t> lengths;
    for (std::uint32_t c = 0; c < 4; ++c) {
      const auto reply = world.reply(1, c);
      lengths.insert(reply.tokens.size());
      if (reply.reason == FinishReason::kLength) continue;
      EXPECT_EQ(reply.reason, FinishReason::kStop);
      EXPECT_EQ(reply.tokens.back() % 9, 0u);
      EXPECT_EQ(reply.matched_stop_token, reply.tokens.back());
      for (std::size_t i = 0; i + 1 < reply.tokens.size(); ++i) EXPECT_NE(reply.tokens[i] % 9, 0u);
    }
    EXPECT_GT(lengths.size(), 1u);
    EXPECT_TRUE(world.AllReturned());
  }
}

TEST(EngineEqualities, PausesInTheMiddleOfRepliesChangeNothing) {
  const WorldConfig config{.pool_blocks = 40};
  EngineWorld world(config, MakeDigest(config));
  const std::vector<Ask> asks = MakeAsks(16, kSeed + 3);
  for (const Ask& ask : asks) world.Submit(ask);
  for (int turn = 0; turn < 60; ++turn) {
    world.SetPaused(1 + static_cast<std::uint64_t>(turn * 7 % 16), turn % 3 != 0);
    world.Turn();
  }
  for (const Ask& ask : asks) world.SetPaused(ask.id, false);
  world.RunUntilIdle();
  ExpectSolo(world, asks);
  EXPECT_TRUE(world.AllReturned());
}

}  // namespace
}  // namespace pagoda::engine
