#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "engine/watchdog.h"
#include "tests/engine/engine_world.h"
#include "tests/fakes/holding_executor.h"

namespace pagoda::engine {
namespace {

using base::RequestId;
using fakes::HoldingExecutor;
using scheduler::FinishReason;

EngineOptions Options() { return {.mailbox_capacity = kMailboxCapacity, .eos_tokens = {kEos}}; }

struct Running {
  explicit Running(const WorldConfig& config = {}) {
    auto holding = std::make_unique<HoldingExecutor>(MakeDigest(config));
    executor = holding.get();
    engine =
        std::make_unique<Engine>(Options(), MakeScheduler(config), std::move(holding), sink, clock);
    engine->Start();
  }
  ~Running() { engine->Stop(); }

  fakes::ManualClock clock;
  fakes::RecordingSink sink;
  HoldingExecutor* executor = nullptr;
  std::unique_ptr<Engine> engine;
};

TEST(Engine, ThirtyTwoRequestsOfFourThreadsGiveTheirSoloRepliesWhileTenAreCancelled) {
  const WorldConfig config{.pool_blocks = 64};
  Running running(config);
  const std::vector<Ask> asks = MakeAsks(32, 7);
  {
    std::vector<std::jthread> doors;
    for (std::size_t door = 0; door < 4; ++door) {
      doors.emplace_back([&, door] {
        for (std::size_t i = door; i < asks.size(); i += 4) {
          running.engine->Submit(MakeRequest(asks[i], config));
          if (i % 3 == 2) running.engine->Cancel(RequestId(asks[i].id), FinishReason::kCancelled);
        }
      });
    }
  }
  running.sink.WaitForFinished(asks.size());
  for (const Ask& ask : asks) {
    const auto reply = running.sink.reply(RequestId(ask.id));
    const std::vector<base::TokenId> solo = SoloReply(ask);
    ASSERT_LE(reply.tokens.size(), solo.size());
    EXPECT_TRUE(std::equal(reply.tokens.begin(), reply.tokens.end(), solo.begin()));
    EXPECT_EQ(reply.tokens.size() == solo.size(), reply.reason == FinishReason::kLength);
  }
  running.engine->Stop();
  const EngineStats stats = running.engine->stats();
  EXPECT_EQ(stats.num_live(), 0);
  EXPECT_EQ(stats.scheduler.blocks_free + stats.scheduler.blocks_cached + 1,
            stats.scheduler.blocks_total);
}

TEST(Engine, StopAnswersEveryLiveRequestWithShutdown) {
  Running running;
  running.executor->Hold();
  for (std::uint64_t id = 1; id <= 20; ++id) running.engine->Submit(MakeRequest({.id = id}));
  running.executor->WaitUntilHeld();
  std::jthread releaser([&] { running.executor->Release(); });
  running.engine->Stop();
  EXPECT_EQ(running.sink.num_finished(), 20u);
  EXPECT_EQ(running.engine->stats().num_live(), 0);
}

TEST(Engine, ARequestSubmittedAfterStopIsAnsweredBeforeSubmitReturns) {
  Running running;
  running.engine->Stop();
  running.engine->Submit(MakeRequest({.id = 5}));
  EXPECT_EQ(running.sink.reply(RequestId(5)).reason, FinishReason::kShutdown);
  EXPECT_EQ(running.engine->stats().num_live(), 0);
}

TEST(Engine, StopIsIdempotentAndNeedsNoWork) {
  Running running;
  running.engine->Stop();
  running.engine->Stop();
  EXPECT_EQ(running.sink.num_finished(), 0u);
}

TEST(Engine, ACancelDuringAStepShowsNothingOfIt) {
  Running running;
  running.executor->Hold();
  running.engine->Submit(MakeRequest({.id = 1}));
  running.executor->WaitUntilHeld();
  running.engine->Cancel(RequestId(1), FinishReason::kDeadline);
  running.engine->Submit(MakeRequest({.id = 2}));
  running.executor->Release();
  running.sink.WaitForFinished(2);
  EXPECT_LE(running.sink.reply(RequestId(1)).tokens.size(), 1u);
  EXPECT_EQ(running.sink.reply(RequestId(1)).reason, FinishReason::kDeadline);
  EXPECT_EQ(running.sink.reply(RequestId(2)).reason, FinishReason::kLength);
}

TEST(Engine, ADeadlineWakesAnEngineThatHasNothingToDo) {
  Running running;
  const base::Instant deadline = running.clock.Now().PlusMillis(20);
  Ask ask{.id = 1, .max_tokens = 80};
  ask.deadline = deadline;
  running.engine->Submit(MakeRequest(ask));
  running.engine->SetPaused(RequestId(1), true);
  running.clock.AdvanceMillis(20);
  running.engine->Cancel(RequestId(99), FinishReason::kCancelled);  // wakes it: this clock cannot
  running.sink.WaitForFinished(1);
  EXPECT_EQ(running.sink.reply(RequestId(1)).reason, FinishReason::kDeadline);
}

TEST(Engine, F9TheWatchdogSeesAStepThatHangsAndItsEnd) {
  Running running;
  Watchdog watchdog(1000);
  running.executor->Hold();
  running.engine->Submit(MakeRequest({.id = 1}));
  running.executor->WaitUntilHeld();
  EXPECT_TRUE(watchdog.Observe(running.engine->stats(), running.clock.Now()).ok());
  running.clock.AdvanceMillis(1000);
  EXPECT_FALSE(watchdog.Observe(running.engine->stats(), running.clock.Now()).ok());
  running.executor->Release();
  running.sink.WaitForFinished(1);
  running.engine->Stop();
  EXPECT_TRUE(watchdog.Observe(running.engine->stats(), running.clock.Now()).ok());
}

TEST(Engine, AFlushBeginsANewEpochForTheDoors) {
  Running running;
  const std::uint64_t before = running.engine->epoch();
  EXPECT_TRUE(running.engine->FlushPrefixCache(std::nullopt).ok());
  EXPECT_EQ(running.engine->epoch(), before + 1);
  running.engine->Submit(MakeRequest({.id = 1}));
  running.sink.WaitForFinished(1);
  running.engine->Stop();
  EXPECT_EQ(running.engine->epoch(), before + 1);
}

TEST(Engine, AnOperatorsCommandIsAnsweredBetweenTwoSteps) {
  Running running;
  running.executor->Hold();
  running.engine->Submit(MakeRequest({.id = 1}));
  running.executor->WaitUntilHeld();
  std::atomic<bool> answered = false;
  std::jthread operators([&] {
    // How many blocks it drops depends on how far the reply has come when the engine reads it.
    EXPECT_TRUE(running.engine->FlushPrefixCache(std::nullopt).ok());
    answered = true;
  });
  EXPECT_FALSE(answered.load());
  running.executor->Release();
  operators.join();
  running.sink.WaitForFinished(1);
  EXPECT_EQ(running.sink.reply(RequestId(1)).reason, FinishReason::kLength);
}

TEST(Engine, NewTenantsAreRefusedOrTakenAsTheSchedulerSays) {
  Running running;
  EXPECT_TRUE(absl::IsInvalidArgument(running.engine->Reconfigure({})));
  EXPECT_TRUE(absl::IsInvalidArgument(running.engine->Reconfigure({{.name = "a", .weight = 0}})));
  EXPECT_TRUE(running.engine->Reconfigure({{.name = "a", .weight = 2, .reserve_blocks = 1}}).ok());
  EXPECT_FALSE(running.engine->stats().is_reconfiguring);
  ASSERT_EQ(running.engine->tenant_stats().size(), 1u);
  running.engine->Submit(MakeRequest({.id = 1}));
  running.sink.WaitForFinished(1);
  running.engine->Stop();
  EXPECT_EQ(running.engine->tenant_stats().front().num_admitted, 1);
}

TEST(Engine, MessagesToAnEngineThatHasStoppedChangeNothing) {
  Running running;
  running.engine->Stop();
  for (int i = 0; i <= kMailboxCapacity; ++i) {
    running.engine->Cancel(RequestId(1), FinishReason::kCancelled);
    running.engine->SetPaused(RequestId(1), true);
    EXPECT_TRUE(absl::IsUnavailable(running.engine->FlushPrefixCache(std::nullopt).status()));
    EXPECT_TRUE(absl::IsUnavailable(running.engine->Reconfigure({})));
  }
  EXPECT_EQ(running.sink.num_finished(), 0u);
}

TEST(EngineDeathTest, AMessageWithoutAPermitIsOurBugSoThatNoCancelIsEverDropped) {
  fakes::ManualClock clock;
  fakes::RecordingSink sink;
  Engine engine({.mailbox_capacity = 2}, MakeScheduler({}), MakeDigest({}), sink, clock);
  engine.Cancel(RequestId(1), FinishReason::kCancelled);
  engine.Cancel(RequestId(2), FinishReason::kCancelled);
  EXPECT_DEATH(engine.Cancel(RequestId(3), FinishReason::kCancelled), "more messages than permits");
}

TEST(EngineDeathTest, AnEngineThatStillRunsMustNotBeDestroyed) {
  EXPECT_DEATH(
      {
        fakes::ManualClock clock;
        fakes::RecordingSink sink;
        Engine engine(Options(), MakeScheduler({}), MakeDigest({}), sink, clock);
        engine.Start();
      },
      "Stop the engine first");
}

}  // namespace
}  // namespace pagoda::engine
