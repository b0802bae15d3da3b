// How long what is cached stays, and who can end it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "scheduler/owner_check.h"
#include "tests/scheduler/world.h"

namespace pagoda::scheduler::testing {
namespace {

using ::testing::HasSubstr;

SchedulerConfig TwoTenants() {
  SchedulerConfig config = SmallConfig(31, 4, 4);
  config.tenants = {{.name = "a"}, {.name = "b"}};
  return config;
}

TEST(CachedBlocks, D8AFlushOfOneTenantLeavesTheOthersHits) {
  World world(TwoTenants());
  world.Run("add a prompt=8 max=1\n run\n add b prompt=8 max=1 tenant=1\n run\n");
  world.Said();
  world.Run("flush 0\n");
  EXPECT_EQ(world.Said(), "dropped 2\n");
  EXPECT_EQ(world.scheduler().epoch(base::TenantId(0)), 1u);
  EXPECT_EQ(world.scheduler().epoch(base::TenantId(1)), 0u);
  world.Run("add a2 prompt=9 max=1\n run\n add b2 prompt=9 max=1 tenant=1\n run\n");
  EXPECT_EQ(world.ended("a2").receipt.cached_tokens, 0);
  EXPECT_EQ(world.ended("b2").receipt.cached_tokens, 8);
}

TEST(CachedBlocks, D8AFlushWhileOneStreamRunsAndOnePrefillIsHalfDoneChangesNoReply) {
  World world(TwoTenants());
  world.Run(
      "add stream prompt=6 max=9\n step\n done\n step\n done\n add half prompt=40 max=2\n step\n"
      "done\n flush 0\n run\n");
  // Neither publishes what it computed, before or after: the old epoch gives no hit.
  world.Run("add stream2 prompt=6 max=1\n run\n add half2 prompt=40 max=1\n run\n");
  EXPECT_EQ(world.ended("stream2").receipt.cached_tokens, 0);
  // The first request of the new epoch shares its first tokens.
  EXPECT_EQ(world.ended("half2").receipt.cached_tokens, 6);
}

// What a request holds is found by nobody any more, and goes with the request: it is not counted.
TEST(CachedBlocks, D8AFlushSaysHowManyBlocksItFreed) {
  World world(TwoTenants());
  world.Run("add a prompt=8 max=1\n run\n add held from=50 prompt=12 max=9\n step\n done\n");
  world.Said();
  world.Run("flush 0\n");
  EXPECT_EQ(world.Said(), "dropped 2\n");
  world.Run("run\n");
}

TEST(CachedBlocks, WhatAFlushFreesIsZeroedByTheNextPlanThoughNobodyAsks) {
  World world(TwoTenants());
  world.Run("add a prompt=8 max=1\n run\n flush 0\n");
  world.Said();
  world.Run("step\n done\n step\n");
  EXPECT_EQ(world.Said(), "zero 2 blocks\nnothing\n");
}

TEST(CachedBlocks, ACachedBlockThatNobodyAsksForInTimeIsDroppedAndZeroed) {
  SchedulerConfig config = TwoTenants();
  config.cached_block_ttl_ms = 10;
  World world(config);
  world.Run("now 5000000\n add a prompt=8 max=1\n run\n");
  EXPECT_EQ(world.scheduler().NextDeadline(), base::Instant::FromNanos(15'000'000));
  world.Said();
  world.Run("now 14999999\n step\n now 15000000\n step\n done\n");
  EXPECT_EQ(world.Said(), "nothing\nzero 2 blocks\n");
  EXPECT_EQ(world.scheduler().stats().blocks_cached, 0);
  EXPECT_EQ(world.scheduler().NextDeadline(), base::Instant::Never());
  world.Run("add a2 prompt=9 max=1\n run\n");
  EXPECT_EQ(world.ended("a2").receipt.cached_tokens, 0);
}

TEST(CachedBlocks, AHitBeginsTheTimeAnew) {
  SchedulerConfig config = TwoTenants();
  config.cached_block_ttl_ms = 10;
  World world(config);
  world.Run("add a prompt=8 max=1\n run\n now 9000000\n add a2 prompt=9 max=1\n run\n");
  EXPECT_EQ(world.ended("a2").receipt.cached_tokens, 8);
  world.Run("now 18000000\n add a3 prompt=9 max=1\n run\n");
  EXPECT_EQ(world.ended("a3").receipt.cached_tokens, 8);
}

TEST(CachedBlocks, AMassOfOldBlocksGoesSomeInEachPlan) {
  SchedulerConfig config = SmallConfig(1'001, 1, 2);
  config.cached_block_ttl_ms = 1;
  config.max_num_batched_tokens = 700;
  World world(config);
  world.Run("add a prompt=600 max=1\n run\n now 2000000\n");
  world.Said();
  world.Run("step\n");
  EXPECT_EQ(world.Said(), "zero 256 blocks\n");
  EXPECT_EQ(world.scheduler().stats().blocks_cached, 600 - 256);
  world.Run("done\n run\n");
  EXPECT_EQ(world.scheduler().stats().blocks_cached, 0);
}

TEST(CachedBlocks, ManySaltsOfOneTenantCloseNoNamespaceOfAnother) {
  SchedulerConfig config = TwoTenants();
  config.max_namespaces = 4;
  config.tenants[1].reserve_blocks = 4;
  World world(config);
  world.Run("add kept prompt=8 max=1 tenant=1\n run\n");
  for (int i = 0; i < 30; ++i) {
    const std::string name = "f" + std::to_string(i);
    world.Run(absl::StrCat("add ", name, " prompt=8 max=1 salt=", name, "\n run\n"));
  }
  world.Run("add again prompt=9 max=1 tenant=1\n run\n");
  EXPECT_EQ(world.ended("again").receipt.cached_tokens, 8);
}

TEST(CachedBlocks, BlocksThatSeveralRequestsHoldCountToTheirTenant) {
  World world(TwoTenants());
  world.Run("add first prompt=8 max=1 tenant=1\n run\n");
  world.Run("add b prompt=9 max=4 tenant=1\n add b2 prompt=9 max=4 tenant=1\n step\n");
  const TenantStats stats = world.scheduler().tenant_stats(base::TenantId(1));
  EXPECT_EQ(stats.shared_block_steps, 2);
  EXPECT_EQ(world.scheduler().block_step_totals().shared, 2);
  EXPECT_EQ(world.scheduler().tenant_stats(base::TenantId(0)).shared_block_steps, 0);
  world.Run("run\n");
}

// "y" waits while "x" computes the prompt of both, and "z" takes what was left of common: what x
// left is cached, on b's reserve, and y may not pin it.
TEST(CachedBlocks, AnAdoptionThatWouldBreakTheBudgetIsSkipped) {
  SchedulerConfig config = SmallConfig(26, 4, 4);
  config.max_num_batched_tokens = 24;
  config.max_model_len = 56;
  config.tenants = {{.name = "a"}, {.name = "b", .reserve_blocks = 6}};
  World world(config);
  world.Run(
      "add x prompt=48 max=5\n step\n done\n add y prompt=48 max=2\n step\n pause y\n done\n");
  world.Run("step\n done\n step\n done\n cancel x\n");
  world.Run("add z prompt=24 max=8 from=500\n step\n done\n step\n done\n");
  const SchedulerStats before = world.scheduler().stats();
  EXPECT_EQ(before.blocks_cached, 6);
  EXPECT_EQ(world.scheduler().tenant_stats(base::TenantId(0)).blocks_pinned, 19);
  world.Said();
  world.Run("resume y\n step\n");
  EXPECT_THAT(world.Said(), HasSubstr("y: compute 24.."));
  EXPECT_EQ(world.scheduler().stats().num_adoptions, before.num_adoptions);
  world.Run("done\n run\n");
  EXPECT_EQ(world.ended("y").receipt.cached_tokens, 24);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
