#include "engine/watchdog.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

using base::Instant;

constexpr std::int64_t kPatienceMillis = 1000;
Instant AtMillis(std::int64_t millis) { return Instant::FromNanos(millis * 1'000'000); }

TEST(Watchdog, AnIdleEngineMayStandStillForEver) {
  Watchdog watchdog(kPatienceMillis);
  EXPECT_TRUE(watchdog.Observe({}, AtMillis(0)).ok());
  EXPECT_TRUE(watchdog.Observe({}, AtMillis(1'000'000)).ok());
}

TEST(Watchdog, F9WaitingWorkWithoutAStepIsReportedAfterThePatience) {
  Watchdog watchdog(kPatienceMillis);
  EngineStats stats{.steps = 7, .num_accepted = 3, .num_finished = 1};
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(0)).ok());
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(999)).ok());
  const absl::Status status = watchdog.Observe(stats, AtMillis(1000));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "no step has ended for 1000 ms while 2 requests wait for one");
}

TEST(Watchdog, ThePatienceBeginsWhenWorkArrivesNotAtTheLastStep) {
  Watchdog watchdog(kPatienceMillis);
  EngineStats stats{.steps = 7};
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(0)).ok());
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(5000)).ok());
  stats.num_accepted = 1;
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(5999)).ok());
  EXPECT_FALSE(watchdog.Observe(stats, AtMillis(6000)).ok());
}

TEST(Watchdog, AStepEndsTheAlarm) {
  Watchdog watchdog(kPatienceMillis);
  EngineStats stats{.steps = 7, .num_accepted = 1};
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(0)).ok());
  EXPECT_FALSE(watchdog.Observe(stats, AtMillis(2000)).ok());
  ++stats.steps;
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(2001)).ok());
}

TEST(Watchdog, RequestsPausedByTheirReadersWaitForNobody) {
  Watchdog watchdog(kPatienceMillis);
  EngineStats stats{.num_accepted = 2, .num_paused = 2};
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(0)).ok());
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(60'000)).ok());
  stats.num_paused = 1;
  EXPECT_TRUE(watchdog.Observe(stats, AtMillis(60'500)).ok());
  EXPECT_FALSE(watchdog.Observe(stats, AtMillis(61'000)).ok());
}

TEST(Watchdog, F9AnEngineThatFailedForGoodIsReportedAtOnceAndForEver) {
  Watchdog watchdog(kPatienceMillis);
  const EngineStats stats{.failed_steps = 8, .failed = true};
  EXPECT_EQ(watchdog.Observe(stats, AtMillis(0)).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(watchdog.Observe(stats, AtMillis(1)).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace pagoda::engine
