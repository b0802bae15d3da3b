// Stories of several tenants: who gets what of a step, whose slots and blocks another may take.
// Tenant 0 is `a`'s, tenant 1 `b`'s, and so on; block 0 is the null block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/fair_counters.h"
#include "tests/scheduler/token_mill.h"
#include "tests/scheduler/world.h"

namespace pagoda::scheduler::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TenantConfig MakeTenant(const char* name, std::int32_t weight, std::int32_t reserve_blocks = 0,
                        bool isolated = false) {
  TenantConfig tenant;
  tenant.name = name;
  tenant.weight = weight;
  tenant.reserve_blocks = reserve_blocks;
  tenant.isolated = isolated;
  return tenant;
}

// Two tenants of equal weight: each has 10 of the step's 20 tokens and 2 of the 4 slots.
SchedulerConfig TwoTenants(std::int32_t pool_blocks) {
  SchedulerConfig config = SmallConfig(pool_blocks, 4, 4);
  config.tenants = {MakeTenant("a", 1), MakeTenant("b", 1)};
  return config;
}

TenantStats StatsOf(const World& world, std::uint32_t tenant) {
  return world.scheduler().tenant_stats(base::TenantId(tenant));
}

// The flood gets its floor and what the other's floor left over: 8 of its 10 tokens are whole
// blocks, 8 go to the other's prompt, and of the 4 that are left one more block.
TEST(Shares, APromptOfOneTenantIsComputedBesideAFloodOfLongOnes) {
  World world(TwoTenants(80));
  world.Run("add a1 prompt=40 max=2\n add a2 prompt=40 from=100 max=2\n");
  world.Run("add b1 prompt=8 from=200 max=2 tenant=1\n step\n");
  const std::string plan = world.Said();
  EXPECT_THAT(plan, HasSubstr("a1: compute 0..11"));
  EXPECT_THAT(plan, HasSubstr("b1: compute 0..7"));
  EXPECT_THAT(plan, Not(HasSubstr("a2")));
  world.Run("run\n");
}

TEST(Shares, AnElasticTenantAloneTakesTheWholeStepAndEverySlot) {
  World world(TwoTenants(80));
  world.Run("add a1 prompt=40 max=9\n step\n done\n");
  EXPECT_THAT(world.Said(), HasSubstr("a1: compute 0..19"));
  for (const char* name : {"a2", "a3", "a4", "a5"}) {
    world.Run("add " + std::string(name) + " prompt=4 max=9\n");
  }
  world.Run("step\n done\n step\n done\n step\n done\n step\n done\n");
  EXPECT_EQ(StatsOf(world, 0).num_running, 4);
  EXPECT_EQ(StatsOf(world, 0).num_waiting, 1);
  world.Run("run\n");
}

TEST(Shares, AnIsolatedTenantNeverTakesWhatOthersLeave) {
  SchedulerConfig config = TwoTenants(80);
  config.tenants[1] = MakeTenant("b", 1, 40, /*isolated=*/true);
  World world(config);
  world.Run("add b1 prompt=40 max=9 tenant=1\n step\n done\n step\n done\n");
  EXPECT_THAT(world.Said(), HasSubstr("b1: compute 8..15"));
  world.Run("add b2 prompt=4 max=9 tenant=1\n add b3 prompt=4 max=9 tenant=1\n");
  for (int i = 0; i < 5; ++i) world.Run("step\n done\n");
  EXPECT_EQ(StatsOf(world, 1).num_running, 2);
  EXPECT_EQ(StatsOf(world, 1).num_waiting, 1);
  world.Run("run\n");
}

// What an isolated tenant's steps are does not depend on a flood beside it.
TEST(Shares, AnIsolatedTenantIsPlannedAsIfItWereAlone) {
  std::string alone;
  for (const bool is_flooded : {false, true}) {
    SchedulerConfig config = TwoTenants(40);
    config.tenants[1] = MakeTenant("b", 1, 16, /*isolated=*/true);
    World world(config);
    std::string seen;
    for (int i = 0; i < 40; ++i) {
      const std::string n = std::to_string(i);
      if (is_flooded && i % 2 == 0)
        world.Run(absl::StrCat("add a", n, " prompt=30 from=", n, " max=9\n"));
      if (i % 8 == 0) world.Run(absl::StrCat("add b", n, " prompt=21 max=7 tenant=1\n"));
      const int steps = world.num_steps();
      world.Run("step\n");
      if (world.num_steps() > steps) world.Run("done\n");
      std::istringstream lines(world.Said());
      for (std::string line; std::getline(lines, line);) {
        // Which blocks it got is nobody's promise.
        if (line[0] == 'b') seen += n + " " + line.substr(0, line.find(", blocks")) + "\n";
      }
    }
    if (is_flooded) {
      EXPECT_EQ(seen, alone);
    } else {
      alone = seen;
    }
    world.Run("run\n");
  }
  EXPECT_THAT(alone, HasSubstr("b32: ended length"));
}

TEST(Shares, ATenantBelowItsFloorTakesTheYoungestSlotOfThoseAboveTheirs) {
  World world(TwoTenants(80));
  for (const char* name : {"a1", "a2", "a3", "a4"}) {
    world.Run("add " + std::string(name) + " prompt=4 max=30\n step\n done\n");
  }
  world.Run("add b1 prompt=4 max=30 tenant=1\n step\n done\n");
  EXPECT_EQ(StatsOf(world, 0).num_slot_victims, 1);
  EXPECT_EQ(StatsOf(world, 1).num_running, 1);
  world.Run("add b2 prompt=4 max=30 tenant=1\n add b3 prompt=4 max=30 tenant=1\n");
  world.Run("step\n done\n step\n done\n");
  // Two each: nobody is above their floor, so the third waits.
  EXPECT_EQ(StatsOf(world, 0).num_slot_victims, 2);
  EXPECT_EQ(StatsOf(world, 0).num_running, 2);
  EXPECT_EQ(StatsOf(world, 1).num_running, 2);
  EXPECT_EQ(StatsOf(world, 1).num_waiting, 1);
  world.Run("run\n");
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
  EXPECT_EQ(world.ended("a2").receipt.preemptions, 0);
  EXPECT_GE(world.ended("a3").receipt.preemptions, 1);
  EXPECT_GE(world.ended("a4").receipt.preemptions, 1);
}

// The prompt of the newcomer does not fit, so it takes no slot.
TEST(Shares, ASlotIsNotTakenInVain) {
  SchedulerConfig config = TwoTenants(22);
  World world(config);
  for (const char* name : {"a1", "a2", "a3", "a4"}) {
    world.Run("add " + std::string(name) + " prompt=16 max=2\n");
  }
  world.Run("step\n done\n pause a1\n");
  world.Run("add b1 prompt=60 max=2 tenant=1\n step\n");
  EXPECT_EQ(StatsOf(world, 0).num_slot_victims, 0);
  EXPECT_EQ(StatsOf(world, 1).num_running, 0);
  world.Run("done\n resume a1\n run\n");
}

TEST(Shares, E3GrowthTakesNothingThatAnotherHasWithinItsReserve) {
  SchedulerConfig config = TwoTenants(13);
  config.tenants[1] = MakeTenant("b", 1, 4);
  World world(config);
  // Of the 8 common blocks a1 comes to need all; a2 is the one that gives way, not b1, though b1
  // would lose less.
  world.Run("add a1 prompt=8 max=24\n add b1 prompt=4 from=100 max=12 tenant=1\n");
  world.Run("add a2 prompt=8 from=200 max=12\n run\n");
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
  EXPECT_EQ(world.ended("b1").receipt.preemptions, 0);
  EXPECT_GE(world.ended("a2").receipt.preemptions, 1);
}

// b1 fits its tenant's reserve; what b has above it is b2's, which would lose more.
TEST(Shares, E3GrowthTakesWhatATenantHasAboveItsReserveFromOthersThanItsOldest) {
  SchedulerConfig config = TwoTenants(13);
  config.tenants[1] = MakeTenant("b", 1, 4);
  World world(config);
  world.Run("add a1 prompt=8 max=24\n add b1 prompt=4 from=100 max=12 tenant=1\n");
  world.Run("add b2 prompt=16 from=200 max=8 tenant=1\n run\n");
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
  EXPECT_EQ(world.ended("b1").receipt.preemptions, 0);
  EXPECT_GE(world.ended("b2").receipt.preemptions, 1);
}

// While b0 reads nothing, b1 is the oldest of its tenant that can run: what b has above its reserve
// is taken from b0, though it is older than the requester.
TEST(Shares, E3APausedRequestBeforeItsTenantsOldestGivesWayAndTheOldestDoesNot) {
  SchedulerConfig config = TwoTenants(13);
  config.tenants[1] = MakeTenant("b", 1, 4);
  World world(config);
  world.Run("add b0 prompt=16 from=200 max=8 tenant=1\n step\n done\n step\n done\n pause b0\n");
  world.Run("add a1 prompt=8 max=24\n add b1 prompt=4 from=100 max=12 tenant=1\n run\n");
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
  EXPECT_EQ(world.ended("b1").receipt.preemptions, 0);
  world.Run("resume b0\n run\n");
  EXPECT_EQ(world.ended("b0").receipt.preemptions, 1);
}

// b1 alone holds more than its tenant's reserve, so its being the oldest protects nothing.
TEST(Shares, E3TheOldestOfATenantIsAVictimIfItNeedsMoreThanTheReserve) {
  SchedulerConfig config = TwoTenants(13);
  config.tenants[1] = MakeTenant("b", 1, 4);
  World world(config);
  world.Run("add a1 prompt=8 max=24\n add b1 prompt=16 from=100 max=20 tenant=1\n run\n");
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
  EXPECT_GE(world.ended("b1").receipt.preemptions, 1);
}

TEST(Shares, APausedRequestWithinItsTenantsReserveIsNobodysVictim) {
  SchedulerConfig config = TwoTenants(13);
  config.tenants[1] = MakeTenant("b", 1, 4);
  World world(config);
  world.Run("add b1 prompt=8 max=8 tenant=1\n step\n done\n pause b1\n");
  world.Run("add a1 prompt=8 from=50 max=24\n add a2 prompt=8 from=200 max=12\n run\n");
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
  world.Run("resume b1\n run\n");
  EXPECT_EQ(world.ended("b1").receipt.preemptions, 0);
}

TEST(Shares, WhatAnotherBorrowedGivesWayToAnOlderRequest) {
  SchedulerConfig config = TwoTenants(13);
  World world(config);
  world.Run("add a1 prompt=8 max=28\n step\n done\n add b1 prompt=12 from=100 max=20 tenant=1\n");
  world.Run("run\n");
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
  EXPECT_GE(world.ended("b1").receipt.preemptions, 1);
}

TEST(Shares, AReserveIsThereAtOnceHoweverFullTheRestIs) {
  SchedulerConfig config = TwoTenants(13);
  config.tenants[1] = MakeTenant("b", 1, 4);
  World world(config);
  world.Run("add a1 prompt=28 max=4\n step\n done\n step\n done\n");
  EXPECT_EQ(StatsOf(world, 0).blocks_pinned, 7);
  world.Run("add b1 prompt=12 from=100 max=3 tenant=1\n step\n");
  EXPECT_EQ(StatsOf(world, 1).num_running, 1);
  world.Run("done\n run\n");
  EXPECT_EQ(world.ended("b1").receipt.preemptions, 0);
  EXPECT_EQ(world.ended("a1").receipt.preemptions, 0);
}

// c1 stays within its reserve and c2 would not; b1, older than both, waits for common blocks.
TEST(Shares, NobodyYoungerDrawsOnCommonBeforeAnOlderHeadThatWaitsForIt) {
  SchedulerConfig config = SmallConfig(15, 4, 6);
  config.max_num_batched_tokens = 90;
  config.tenants = {MakeTenant("a", 1), MakeTenant("b", 1), MakeTenant("c", 1, 2)};
  World world(config);
  world.Run("add a1 prompt=32 max=16\n step\n done\n");
  world.Run("add b1 prompt=24 from=100 max=2 tenant=1\n");
  world.Run("add c1 prompt=4 from=200 max=9 tenant=2\n");
  world.Run("add c2 prompt=8 from=300 max=2 tenant=2\n step\n done\n");
  EXPECT_EQ(StatsOf(world, 1).num_running, 0);
  EXPECT_EQ(StatsOf(world, 2).num_running, 1);
  EXPECT_EQ(StatsOf(world, 2).num_waiting, 1);
  world.Run("cancel b1\n step\n");
  EXPECT_EQ(StatsOf(world, 2).num_running, 2);
  world.Run("done\n run\n");
}

TEST(Shares, ATenantRunsNoMoreRequestsThanItsLimit) {
  SchedulerConfig config = TwoTenants(80);
  config.tenants[0].max_running = 1;
  World world(config);
  world.Run("add a1 prompt=4 max=3\n add a2 prompt=4 max=3\n step\n done\n");
  EXPECT_EQ(StatsOf(world, 0).num_running, 1);
  world.Run("run\n");
  EXPECT_EQ(world.ended("a2").receipt.preemptions, 0);
}

TEST(Shares, ARequestHasAtMostAsManyChoicesAsItsTenantHasSlots) {
  World world(TwoTenants(80));
  world.Run("add a1 prompt=4 max=3 n=3\n add a2 prompt=4 max=3 n=2\n run\n");
  EXPECT_EQ(world.Said(), "a1: refused\na2: ended length\n");
}

TEST(Shares, MoreWaitingRequestsThanATenantsBoundAreOurBug) {
  SchedulerConfig config = TwoTenants(80);
  config.tenants[1].max_queued_requests = 2;
  const char* three =
      "add b1 prompt=4 max=3 tenant=1\n add b2 prompt=4 max=3 tenant=1\n"
      "add b3 prompt=4 max=3 tenant=1\n";
  EXPECT_DEATH(World(config).Run(three), "more requests than the gate may let in for a tenant");
}

TEST(Shares, ThePromptIsChargedInFullHoweverMuchOfItIsFound) {
  TokenMill mill(TwoTenants(80));
  mill.Add(0, 1, 17, 1);
  while (mill.Step()) {
  }
  const std::int64_t once = mill.state().tenants[0].counter;
  EXPECT_EQ(once, 17 * kCounterScale);
  mill.Add(0, 1, 17, 3);
  while (mill.Step()) {
  }
  EXPECT_EQ(mill.scheduler().stats().cached_tokens, 16);
  EXPECT_EQ(mill.state().tenants[0].counter - once, (17 + 2 * 2) * kCounterScale);
}

TEST(Shares, WhoAsksForNothingKeepsNoCreditAgainstThoseWhoWait) {
  SchedulerConfig config = TwoTenants(80);
  TokenMill mill(config);
  std::vector<Tenant>& tenants = mill.state().tenants;
  for (int i = 0; i < 12; ++i) mill.Add(0, static_cast<base::TokenId>(1 + 20 * i), 9, 30);
  int times_eligible = 0;  // not while it has every slot itself
  while (tenants[0].counts.num_admitted < 12) {
    LiftCounters(mill.state());
    if (tenants[0].is_eligible) {
      ++times_eligible;
      EXPECT_EQ(tenants[1].counter, tenants[0].counter);
    }
    ASSERT_TRUE(mill.Step());
  }
  EXPECT_GT(times_eligible, 0);
  EXPECT_EQ(tenants[1].counts.num_lifts, 0);
}

TEST(Shares, TheCreditOfOneThatWaitsIsCutToTwoStepsAndCounted) {
  SchedulerConfig config = TwoTenants(80);
  config.tenants[0].weight = 1;
  TokenMill mill(config);
  SchedulerState& state = mill.state();
  mill.Add(0, 1, 9, 3);
  mill.Add(1, 1, 9, 3);
  state.tenants[0].counter = std::int64_t{1'000'000} * kCounterScale;
  LiftCounters(state);
  const std::int64_t two_steps = 2 * std::int64_t{config.max_model_len} * kCounterScale;
  EXPECT_EQ(state.tenants[0].counter - state.tenants[1].counter, two_steps);
  EXPECT_EQ(state.tenants[1].counts.num_lifts, 1);
  EXPECT_EQ(state.tenants[0].counts.num_lifts, 0);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
