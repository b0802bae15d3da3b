// Stories of what befalls requests that run: failed steps, rows that are not finite, preemption.
// Block 0 is the null block, so a pool of 9 has 8 to use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/scheduler/world.h"

namespace pagoda::scheduler::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The full block before it was published long ago; the one that the failed step wrote into is
// computed again.
TEST(Setbacks, AFailedStepPublishesNothingOfTheBlockThatItWroteInto) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add a prompt=6 max=6\n step\n done\n step\n fail\n");
  world.Said();
  world.Run("step\n");
  EXPECT_EQ(world.Said(), "a: compute 4..6, blocks 1 2, sample\n");
  world.Run("done\n run\n");
  EXPECT_EQ(world.Said(), "a: ended length\n");
}

TEST(Setbacks, ARowThatIsNotFiniteSealsNothingOfItsStep) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add a prompt=8 max=4\n step\n spoil\n");
  EXPECT_THAT(world.Said(), HasSubstr("a: ended not finite\n"));
  world.Run("add b prompt=9 max=2\n run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 0);
  // What earlier steps wrote stays.
  world.Run("add c prompt=8 from=50 max=9\n step\n done\n step\n spoil\n");
  world.Run("add d prompt=9 from=50 max=2\n run\n");
  EXPECT_EQ(world.ended("d").receipt.cached_tokens, 8);
}

// The new one is of a better priority, and there is room for one of the two.
TEST(Setbacks, OneThatWasPreemptedComesBackBeforeAnyNewOne) {
  World world(SmallConfig(6, 4, 2));
  world.Run("add a prompt=8 max=10\n add b prompt=7 from=100 max=5\n step\n done\n");
  while (world.scheduler().stats().num_preemptions == 0) world.Run("step\n done\n");
  world.Run("add c prompt=16 from=200 max=1 priority=-1\n run\n");
  EXPECT_THAT(world.Said(), HasSubstr("a: ended length\nb: ended length\nc: ended length\n"));
}

// b is older than c and has less to compute again.
TEST(Setbacks, TheVictimIsTheYoungerRequestThatLosesTheLeastWork) {
  SchedulerConfig config = SmallConfig(9, 4, 3);
  config.max_num_batched_tokens = 40;
  World world(config);
  world.Run("add a prompt=8 max=12\n add b prompt=3 from=100 max=6\n");
  world.Run("add c prompt=11 from=200 max=4\n");
  while (world.scheduler().stats().num_preemptions == 0) {
    world.Said();
    world.Run("step\n done\n");
  }
  const std::string said = world.Said();
  EXPECT_THAT(said, HasSubstr("a: compute 12..12"));
  EXPECT_THAT(said, HasSubstr("c: compute"));
  EXPECT_THAT(said, Not(HasSubstr("b: compute")));
  world.Run("run\n");
  EXPECT_GE(world.ended("b").receipt.preemptions, 1);
}

// d's blocks are named by the step in flight, so a waits for its fence, and b goes on.
TEST(Setbacks, NoFurtherVictimIsTakenWhileTheBlocksOfOneAreOnTheirWay) {
  SchedulerConfig config = SmallConfig(7, 4, 3);
  config.max_num_batched_tokens = 40;
  config.max_in_flight = 2;
  World world(config);
  world.Run("add a prompt=7 max=9\n add b prompt=5 from=100 max=9\n");
  world.Run("add d prompt=4 from=200 max=9\n step\n step\n done\n");
  EXPECT_EQ(world.scheduler().stats().num_preemptions, 0);
  world.Said();
  world.Run("step\n");
  EXPECT_EQ(world.scheduler().stats().num_preemptions, 1);
  EXPECT_EQ(world.Said(), "b: compute 6..6, sample\n");
  world.Run("done\n");
  world.Run("step\n");
  EXPECT_THAT(world.Said(), HasSubstr("a: compute 8..8, blocks"));
  world.Run("run\n");
  EXPECT_EQ(world.ended("a").receipt.preemptions, 0);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
