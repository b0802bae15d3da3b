#include "scheduler/public_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/world.h"

namespace pagoda::scheduler::testing {
namespace {

using base::BlockId;
using base::TenantId;
using ::testing::HasSubstr;

constexpr TenantId kA{0}, kB{1};

std::vector<BlockId> Blocks(std::uint32_t first, std::uint32_t count) {
  std::vector<BlockId> blocks;
  for (std::uint32_t i = 0; i < count; ++i) blocks.emplace_back(first + i);
  return blocks;
}

TEST(PublicLane, MatchesByTokensTheLongestPrefixThatTheTenantMayRead) {
  PublicLane lane(4, 20);
  EXPECT_TRUE(lane.empty());
  const std::vector<TenantId> only_b = {kB};
  lane.Register(Ascending(1, 8), Blocks(1, 2), {});
  lane.Register(Ascending(1, 14), Blocks(3, 4), only_b);
  std::vector<BlockId> hits(8);
  EXPECT_EQ(lane.Match(kA, Ascending(1, 20), hits).num_full, 2u);
  EXPECT_EQ(hits[0], BlockId(1));
  const auto of_b = lane.Match(kB, Ascending(1, 20), hits);
  EXPECT_EQ(of_b.num_full, 3u);
  EXPECT_EQ(hits[2], BlockId(5));
  EXPECT_EQ(of_b.copy_source, BlockId(6));
  EXPECT_EQ(of_b.copied_tokens, 2);
  EXPECT_EQ(lane.Match(kA, Ascending(2, 20), hits).num_full, 0u);
  EXPECT_TRUE(lane.MayRead(kA, BlockId(1)));
  EXPECT_FALSE(lane.MayRead(kA, BlockId(3)));
  EXPECT_TRUE(lane.MayRead(kB, BlockId(3)));
  EXPECT_FALSE(lane.MayRead(kA, BlockId(19)));
}

TEST(PublicLane, LeavesTheLastTokenOfAPromptToBeComputed) {
  PublicLane lane(4, 20);
  lane.Register(Ascending(1, 8), Blocks(1, 2), {});
  std::vector<BlockId> hits(8);
  const auto found = lane.Match(kA, Ascending(1, 6), hits);
  EXPECT_EQ(found.num_full, 1u);
  EXPECT_EQ(found.copied_tokens, 1);
  const auto one_more = lane.Match(kA, Ascending(1, 5), hits);
  EXPECT_EQ(one_more.copy_source, std::nullopt);
}

// Two elastic tenants, six blocks for the public lane, and one prefix of two and a half blocks.
SchedulerConfig WithLane() {
  SchedulerConfig config = SmallConfig(31, 4, 4);
  config.public_blocks = 6;
  config.max_model_len = 60;
  config.tenants = {{.name = "a"}, {.name = "b", .reserve_blocks = 5, .isolated = true}};
  return config;
}

TEST(PublicLane, APrefixIsComputedOnceAndReadByEveryTenant) {
  World world(WithLane());
  world.Run("public prefix prompt=10\n run\n");
  EXPECT_EQ(world.Said(), "prefix: ended length\n");
  EXPECT_EQ(world.scheduler().stats().blocks_public, 3);
  world.Run("add a prompt=13 max=2\n step\n");
  EXPECT_THAT(world.Said(), HasSubstr("a: compute 10..12, "));
  world.Run("run\n add b prompt=13 max=2 tenant=1\n step\n");
  EXPECT_THAT(world.Said(), HasSubstr("b: compute 10..12, "));
  world.Run("run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 10);
  EXPECT_EQ(world.ended("b").receipt.blocks_reused, 2);
  // The second comes from its own namespace's blocks behind the public ones.
  world.Run("add again prompt=13 max=2 tenant=1\n step\n");
  EXPECT_THAT(world.Said(), HasSubstr("again: compute 12..12"));
  world.Run("run\n");
}

TEST(PublicLane, AWholePromptInTheLaneComputesOneTokenAndWritesNone) {
  World world(WithLane());
  world.Run("public prefix prompt=8\n run\n add a prompt=8 max=3\n step\n");
  EXPECT_THAT(world.Said(), HasSubstr("a: compute 7..7, 1 without KV"));
  world.Run("run\n");
}

TEST(PublicLane, PublicBlocksAreCountedAsPublicAndOutliveAFloodAndAFlush) {
  World world(WithLane());
  world.Run("public prefix prompt=8\n run\n");
  for (int i = 0; i < 20; ++i) {
    const std::string from = std::to_string(100 * (i + 1));
    world.Run("add f" + std::to_string(i) + " prompt=40 max=4 from=" + from + "\n run\n");
  }
  world.Run("flush\n run\n");
  EXPECT_EQ(world.scheduler().stats().blocks_public, 2);
  world.Run("add a prompt=9 max=1\n");
  const BlockStepTotals before = world.scheduler().block_step_totals();
  world.Run("step\n");
  const BlockStepTotals after = world.scheduler().block_step_totals();
  EXPECT_EQ(after.public_lane - before.public_lane, 2);
  EXPECT_EQ(after.requests - before.requests, 1);  // the prompt's third block
  EXPECT_EQ(after.shared, before.shared);
  world.Run("run\n");
  EXPECT_EQ(world.ended("a").receipt.cached_tokens, 8);
}

TEST(PublicLane, APrefixLimitedToSomeTenantsIsNotFoundByOthers) {
  World world(WithLane());
  world.Run("public prefix prompt=8 readers=1\n run\n add a prompt=9 max=1\n run\n");
  EXPECT_EQ(world.ended("a").receipt.cached_tokens, 0);
  world.Run("add b prompt=9 max=1 tenant=1\n run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 8);
}

// Each has blocks of its own: what the first holds is not the second's to give.
TEST(PublicLane, TwoPrefixesMayBeginAlike) {
  World world(WithLane());
  world.Run("public short prompt=8\n run\n public long prompt=13\n run\n");
  EXPECT_EQ(world.Said(), "short: ended length\nlong: ended length\n");
  EXPECT_EQ(world.scheduler().stats().blocks_public, 6);
  world.Run("add a prompt=14 max=1\n run\n");
  EXPECT_EQ(world.ended("a").receipt.cached_tokens, 13);
}

TEST(PublicLane, WhatDoesNotFitIsRefusedWithTheNumbers) {
  World world(WithLane());
  world.Run("public one prompt=17\n public two prompt=5\n run\n");
  EXPECT_THAT(world.Said(), HasSubstr("two: a public prefix of 5 tokens takes 2 blocks; of "
                                      "public_blocks = 6, 1 are left"));
}

TEST(PublicLane, ItsBlocksAreNobodysToTake) {
  const SchedulerConfig config = WithLane();
  EXPECT_EQ(Scheduler::CapacityBlocks(config, kA), 19);
  EXPECT_EQ(Scheduler::CapacityBlocks(config, kB), 5);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
