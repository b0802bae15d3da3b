#include "engine/engine_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/engine/engine_world.h"
#include "tests/fakes/failing_executor.h"
#include "tests/fakes/naive_stops.h"
#include "tests/fakes/scripted_executor.h"

namespace pagoda::engine {
namespace {

using base::TokenId;
using fakes::FailingExecutor;
using fakes::ScriptedExecutor;
using scheduler::FinishReason;
using testing::ElementsAre;
using testing::IsEmpty;

// A world whose replies are scripted by seed.
struct ScriptedWorld {
  explicit ScriptedWorld(const WorldConfig& config = {}) {
    auto made = std::make_unique<ScriptedExecutor>(config.max_num_seqs, config.max_in_flight);
    executor = made.get();
    world = std::make_unique<EngineWorld>(config, std::move(made));
  }
  EngineWorld* operator->() { return world.get(); }

  ScriptedExecutor* executor = nullptr;
  std::unique_ptr<EngineWorld> world;
};

TEST(EngineLoop, AReplyIsItsTokensInOrderAndOneEnd) {
  ScriptedWorld world;
  world.executor->Script(1, {10, 11, 12});
  world->Submit({.max_tokens = 3});
  world->RunUntilIdle();
  EXPECT_THAT(world->reply(1).tokens, ElementsAre(10, 11, 12));
  EXPECT_EQ(world->reply(1).reason, FinishReason::kLength);
  EXPECT_THAT(world->reply(1).all_tokens, ElementsAre(1, 2, 3, 10, 11, 12));
  EXPECT_TRUE(world->AllReturned());
}

TEST(EngineLoop, EosIsDeliveredNamedAndTheLastToken) {
  ScriptedWorld world;
  world.executor->Script(1, {10, kEos, 12});
  world->Submit({.max_tokens = 8});
  world->RunUntilIdle();
  EXPECT_THAT(world->reply(1).tokens, ElementsAre(10, kEos));
  EXPECT_EQ(world->reply(1).reason, FinishReason::kStop);
  EXPECT_EQ(world->reply(1).matched_stop_token, kEos);
  EXPECT_EQ(world->reply(1).receipt.generated_tokens, 2);
}

TEST(EngineLoop, AStopStringCutsTheTextAtItsFirstByte) {
  ScriptedWorld world;
  world.executor->Script(1, {0, 1, 2});
  scheduler::NewRequest request = MakeRequest({});
  request.stop_condition = std::make_unique<fakes::NaiveStops>(
      std::vector<std::string>{"KL"}, std::vector<std::string>{"ab", "cK", "Ld"});
  world->Submit(std::move(request));
  world->RunUntilIdle();
  EXPECT_THAT(world->reply(1).showable_bytes, ElementsAre(2, 3, 3));
  EXPECT_EQ(world->reply(1).text_bytes, 3u);
  EXPECT_EQ(world->reply(1).matched_stop, 0);
  EXPECT_EQ(world->reply(1).reason, FinishReason::kStop);
}

TEST(EngineLoop, TokensDrawnPastTheEndByStepsInFlightAreNeverShown) {
  ScriptedWorld world({.max_in_flight = 2});
  world.executor->Script(1, {10, kEos, 12, 13});
  world->Submit({.max_tokens = 8});
  world->RunUntilIdle();
  EXPECT_THAT(world->reply(1).tokens, ElementsAre(10, kEos));
  EXPECT_EQ(world->reply(1).receipt.generated_tokens, 2);
  EXPECT_TRUE(world->AllReturned());
}

TEST(EngineLoop, ACancelledWaitingRequestEndsWithoutAStep) {
  ScriptedWorld world;
  world->Submit(Ask{});
  world->Cancel(1);
  world->RunUntilIdle();
  EXPECT_EQ(world->reply(1).reason, FinishReason::kCancelled);
  EXPECT_THAT(world->reply(1).tokens, IsEmpty());
  EXPECT_EQ(world.executor->num_submitted(), 0);
}

TEST(EngineLoop, NothingOfAStepInFlightIsShownAfterACancel) {
  ScriptedWorld world({.max_in_flight = 2});
  world->Submit(Ask{});
  ASSERT_EQ(world->Turn(), EngineLoop::Turn::kWorked);
  ASSERT_EQ(world.executor->num_submitted(), 1);
  world->Cancel(1);
  world->Cancel(1);
  world->RunUntilIdle();
  EXPECT_EQ(world->reply(1).reason, FinishReason::kCancelled);
  EXPECT_THAT(world->reply(1).tokens, IsEmpty());
  EXPECT_TRUE(world->AllReturned());
}

TEST(EngineLoop, ACancelOfAnUnknownOrFinishedRequestDoesNothing) {
  ScriptedWorld world;
  world->Cancel(77);
  world->Submit({.max_tokens = 1});
  world->RunUntilIdle();
  world->Cancel(1);
  world->SetPaused(1, true);
  world->RunUntilIdle();
  EXPECT_EQ(world->sink().num_finished(), 1u);
  EXPECT_EQ(world->loop().stats().num_paused, 0);
}

TEST(EngineLoop, ADeadlineEndsARequestWhereverItIs) {
  ScriptedWorld world({.max_num_seqs = 1});
  const base::Instant deadline = world->clock().Now().PlusMillis(50);
  world->Submit({.id = 1, .max_tokens = 80, .deadline = deadline});
  world->Submit({.id = 2, .deadline = deadline});
  EXPECT_EQ(world->loop().NextWake(), deadline);
  world->Turn();
  world->clock().AdvanceMillis(50);
  world->RunUntilIdle();
  EXPECT_EQ(world->reply(1).reason, FinishReason::kDeadline);
  EXPECT_EQ(world->reply(2).reason, FinishReason::kDeadline);
  EXPECT_TRUE(world->loop().NextWake().is_never());
  EXPECT_TRUE(world->AllReturned());
}

TEST(EngineLoop, APausedRequestStandsStillAndGoesOnWhereItWas) {
  ScriptedWorld world;
  world.executor->Script(1, {10, 11, 12, 13});
  world->Submit({.max_tokens = 4});
  world->Turn();
  world->Turn();
  const std::size_t before = world->reply(1).tokens.size();
  world->SetPaused(1, true);
  world->RunUntilIdle();
  EXPECT_EQ(world->reply(1).tokens.size(), before);
  EXPECT_EQ(world->loop().stats().num_paused, 1);
  world->SetPaused(1, false);
  world->RunUntilIdle();
  EXPECT_THAT(world->reply(1).tokens, ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(world->loop().stats().num_paused, 0);
}

TEST(EngineLoop, ARequestThatEndsWhilePausedIsNoLongerCountedAsPaused) {
  ScriptedWorld world;
  world->Submit(Ask{});
  world->SetPaused(1, true);
  world->SetPaused(1, true);
  world->Cancel(1);
  world->RunUntilIdle();
  EXPECT_EQ(world->loop().stats().num_paused, 0);
}

TEST(EngineLoop, LogitsThatAreNotFiniteEndThatRequestAlone) {
  ScriptedWorld world;
  world.executor->Script(1, {10, 11, 12});
  world.executor->Script(2, {20, 21, 22});
  world.executor->MakeNonFinite(1, 1);
  world->Submit({.id = 1, .max_tokens = 3, .seed = 1});
  world->Submit({.id = 2, .prompt = {7, 8}, .max_tokens = 3, .seed = 2});
  world->RunUntilIdle();
  EXPECT_EQ(world->reply(1).reason, FinishReason::kNonFinite);
  EXPECT_THAT(world->reply(1).tokens, ElementsAre(10));
  EXPECT_THAT(world->reply(2).tokens, ElementsAre(20, 21, 22));
  EXPECT_TRUE(world->AllReturned());
}

TEST(EngineLoop, EndAllAnswersWhatWaitsWhatRunsAndWhatIsInFlight) {
  ScriptedWorld world({.max_num_seqs = 2, .max_in_flight = 2});
  for (std::uint64_t id = 1; id <= 5; ++id) world->Submit({.id = id, .seed = id});
  world->Turn();
  world->loop().EndAll(FinishReason::kShutdown);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    EXPECT_EQ(world->reply(id).reason, FinishReason::kShutdown) << id;
  }
  EXPECT_TRUE(world->AllReturned());
}

TEST(EngineLoop, F9StepsThatFailForGoodEndAllRequestsAndTheEngine) {
  const WorldConfig config;
  EngineWorld world(
      config, std::make_unique<FailingExecutor>(MakeDigest(config), FailingExecutor::Where::kAwait,
                                                FailingExecutor::EveryNth(1)));
  for (std::uint64_t id = 1; id <= 6; ++id) world.Submit({.id = id, .seed = id});
  world.RunUntilIdle();
  EXPECT_EQ(world.sink().num_finished(), 6u);
  EXPECT_EQ(world.reply(6).reason, FinishReason::kFailed);
  EXPECT_TRUE(world.loop().stats().failed);
  EXPECT_EQ(world.sink().engine_failure().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(world.AllReturned());
}

TEST(EngineLoop, F9ARequestThatComesAfterTheEngineFailedIsAnsweredAtOnce) {
  const WorldConfig config;
  EngineWorld world(
      config, std::make_unique<FailingExecutor>(MakeDigest(config), FailingExecutor::Where::kSubmit,
                                                FailingExecutor::EveryNth(1)));
  for (std::uint64_t id = 1; id <= 6; ++id) world.Submit({.id = id, .seed = id});
  world.RunUntilIdle();
  ASSERT_TRUE(world.loop().stats().failed);
  world.Submit({.id = 7});
  EXPECT_EQ(world.reply(7).reason, FinishReason::kFailed);
  EXPECT_EQ(world.Turn(), EngineLoop::Turn::kIdle);
}

TEST(EngineLoop, FailuresWithGoodStepsBetweenThemNeverAddUp) {
  const WorldConfig config;
  EngineWorld world(
      config, std::make_unique<FailingExecutor>(MakeDigest(config), FailingExecutor::Where::kAwait,
                                                FailingExecutor::EveryNth(4)));
  for (std::uint64_t id = 1; id <= 4; ++id) world.Submit({.id = id, .max_tokens = 60, .seed = id});
  world.RunUntilIdle();
  EXPECT_GT(world.loop().stats().failed_steps, 8);
  EXPECT_FALSE(world.loop().stats().failed);
  EXPECT_EQ(world.reply(4).tokens.size(), 60u);
}

TEST(EngineLoop, AVoidStepBehindAFailedOneIsWaitedForAndDoesNotCount) {
  const WorldConfig config{.budget_tokens = 16, .max_in_flight = 2};
  auto first = [](std::int64_t step, const scheduler::StepPlan&) { return step == 0; };
  EngineWorld world(config, std::make_unique<FailingExecutor>(
                                MakeDigest(config), FailingExecutor::Where::kAwait, first));
  const Ask ask{.prompt = std::vector<TokenId>(60, 7)};
  world.Submit(ask);
  world.Turn();  // the first chunk is out
  world.Turn();  // the second one too; the first fails
  EXPECT_EQ(world.loop().stats().failed_steps, 1);
  world.Turn();  // the first chunk again
  EXPECT_EQ(world.loop().stats().steps, 0);
  world.RunUntilIdle();
  EXPECT_EQ(world.reply(1).tokens, SoloReply(ask));
}

TEST(EngineLoop, ARequestWhoseStepsAlwaysFailEndsAloneAndItsNeighboursAreUnchanged) {
  constexpr std::size_t kPoisonLength = 11;
  auto fails = [](std::int64_t, const scheduler::StepPlan& plan) {
    for (const scheduler::WorkItem& item : plan.work) {
      if (item.first_position == 0 && item.tokens.count == kPoisonLength) return true;
    }
    return false;
  };
  const WorldConfig config;
  EngineWorld world(config, std::make_unique<FailingExecutor>(
                                MakeDigest(config), FailingExecutor::Where::kAwait, fails));
  const Ask good{.id = 1, .prompt = {5, 6, 7}, .seed = 3};
  const Ask poison{.id = 2, .prompt = std::vector<TokenId>(kPoisonLength, 9), .seed = 4};
  const Ask other{.id = 3, .prompt = {8, 6, 7, 5, 3, 0, 9}, .seed = 5};
  for (const Ask& ask : {good, poison, other}) world.Submit(ask);
  world.RunUntilIdle();
  EXPECT_EQ(world.reply(2).reason, FinishReason::kFailed);
  EXPECT_EQ(world.reply(1).tokens, SoloReply(good));
  EXPECT_EQ(world.reply(3).tokens, SoloReply(other));
  EXPECT_FALSE(world.loop().stats().failed);
  EXPECT_TRUE(world.AllReturned());
}

}  // namespace
}  // namespace pagoda::engine
