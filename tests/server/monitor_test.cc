#include "server/core/monitor.h"

#include <gtest/gtest.h>

#include "tests/server/world.h"

namespace pagoda::server {
namespace {

engine::EngineStats Stats(std::int64_t steps, std::int64_t live) {
  engine::EngineStats stats;
  stats.steps = steps;
  stats.num_accepted = live;
  return stats;
}

// Row F9: no progress with work waiting.
TEST(Monitor, AnEngineThatStopsMovingWithWorkWaitingTakesHealthDownUntilItMoves) {
  World world;
  Monitor monitor({.stall_limit_millis = 1000}, world.pipeline, world.lifecycle, world.clock);
  world.engine.SetStats(Stats(5, 1));
  monitor.Poll();
  world.clock.AdvanceMillis(999);
  monitor.Poll();
  EXPECT_TRUE(world.lifecycle.healthy());
  world.clock.AdvanceMillis(2);
  monitor.Poll();
  EXPECT_FALSE(world.lifecycle.healthy());
  world.engine.SetStats(Stats(6, 1));
  monitor.Poll();
  EXPECT_TRUE(world.lifecycle.healthy());
}

TEST(Monitor, AnIdleEngineMayRestForEver) {
  World world;
  Monitor monitor({.stall_limit_millis = 1000}, world.pipeline, world.lifecycle, world.clock);
  world.engine.SetStats(Stats(5, 0));
  monitor.Poll();
  world.clock.AdvanceMillis(1'000'000);
  monitor.Poll();
  EXPECT_TRUE(world.lifecycle.healthy());
}

TEST(Monitor, AnEngineThatFailedForGoodTakesHealthDownForGood) {
  World world;
  Monitor monitor({}, world.pipeline, world.lifecycle, world.clock);
  engine::EngineStats stats = Stats(5, 0);
  stats.failed = true;
  world.engine.SetStats(stats);
  monitor.Poll();
  world.engine.SetStats(Stats(6, 0));
  monitor.Poll();
  EXPECT_FALSE(world.lifecycle.healthy());
}

TEST(Monitor, StepsThatFailedAreToldOnceForAllSinceTheLastLook) {
  World world;
  int num_told = 0;
  Monitor monitor({.on_failed_steps = [&] { ++num_told; }}, world.pipeline, world.lifecycle,
                  world.clock);
  engine::EngineStats stats = Stats(5, 0);
  for (const auto& [failed, told] : {std::pair(0, 0), {2, 1}, {2, 1}, {3, 2}}) {
    stats.failed_steps = failed;
    world.engine.SetStats(stats);
    monitor.Poll();
    EXPECT_EQ(num_told, told);
  }
}

TEST(Monitor, ItsThreadStartsAndStops) {
  World world;
  Monitor monitor({}, world.pipeline, world.lifecycle, world.clock);
  monitor.Start();
  monitor.Stop();
  monitor.Stop();
}

}  // namespace
}  // namespace pagoda::server
