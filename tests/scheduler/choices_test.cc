#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/scheduler/world.h"

// Requests with several choices, as stories (tests/scheduler/world.h): "a.1" is choice 1 of "a".
namespace pagoda::scheduler::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Choices, ThePromptIsComputedOnceAndItsPartialBlockIsCopiedForTheOthers) {
  World world(SmallConfig(30, 4, 4));
  world.Run("add a prompt=6 max=3 n=3\n step\n done\n step\n done\n step\n done\n");
  EXPECT_EQ(world.Said(),
            "a: compute 0..5, blocks 1 2, sample x 3\n"
            "copy 2 of block 2 to 3\n"
            "copy 2 of block 2 to 4\n"
            "a: compute 6..6, sample\n"
            "a.1: compute 6..6, blocks 1 3, sample\n"
            "a.2: compute 6..6, blocks 1 4, sample\n"
            "a: compute 7..7, sample\n"
            "a.1: compute 7..7, sample\n"
            "a.2: compute 7..7, sample\n"
            "a: ended length\n");
  const Receipt& receipt = world.ended("a").receipt;
  EXPECT_EQ(receipt.generated_tokens, 9);
  EXPECT_EQ(receipt.prefill_steps, 1);
  EXPECT_EQ(receipt.decode_steps, 2);  // a step counts once, however many choices are in it
  EXPECT_EQ(receipt.blocks_peak, 4);
  EXPECT_EQ(world.ended("a").request.WorstCaseBlocks(4), 4);
}

TEST(Choices, APromptOfWholeBlocksIsSharedWithoutACopy) {
  World world(SmallConfig(30, 4, 4));
  world.Run("add a prompt=8 max=2 n=2\n step\n done\n step\n done\n");
  EXPECT_EQ(world.Said(),
            "a: compute 0..7, blocks 1 2, sample x 2\n"
            "a: compute 8..8, blocks 3, sample\n"
            "a.1: compute 8..8, blocks 1 2 4, sample\n"
            "a: ended length\n");
}

TEST(Choices, TheFirstChoiceIsWhatOneAloneWouldBeAndTheOthersDiffer) {
  World world(SmallConfig(60, 4, 8));
  world.Run("add one prompt=7 max=12\n run\n flush\n add three prompt=7 max=12 n=3\n run\n");
  EXPECT_TRUE(std::ranges::equal(world.answer("three", 0), world.answer("one")));
  EXPECT_FALSE(std::ranges::equal(world.answer("three", 1), world.answer("one")));
  EXPECT_FALSE(std::ranges::equal(world.answer("three", 1), world.answer("three", 2)));
}

TEST(Choices, AWhollyCachedPromptComputesOneTokenForAllOfThem) {
  World world(SmallConfig(30, 4, 4));
  world.Run("add cold prompt=8 max=1\n run\n add a prompt=8 max=2 n=3\n step\n");
  EXPECT_EQ(world.Said(),
            "cold: ended length\n"
            "a: compute 7..7, 1 without KV, blocks 1 2, sample x 3\n");
  world.Run("run\n");
  EXPECT_EQ(world.ended("a").receipt.cached_tokens, 7);
}

TEST(Choices, AnAdmissionNeedsASlotForEveryChoiceAndNeverTakesSomeOfThem) {
  World world(SmallConfig(60, 4, 4));
  world.Run("add a prompt=4 max=3 n=2\n step\n done\n add b prompt=4 from=50 max=2 n=3\n step\n");
  EXPECT_EQ(world.scheduler().stats().num_waiting, 1);
  EXPECT_EQ(world.scheduler().stats().num_running, 1);
  world.Run("done\n step\n done\n step\n done\n run\n");
  EXPECT_THAT(world.Said(), HasSubstr("b: compute 0..3, blocks"));
  EXPECT_EQ(world.ended("b").receipt.generated_tokens, 6);
}

// Blocks of the tails are there from the admission on: a younger request does not get them.
TEST(Choices, TheTailCopiesAreReservedAtAdmission) {
  World world(SmallConfig(9, 4, 8));
  world.Run("add a prompt=6 max=2 n=4\n add b prompt=12 from=50 max=1\n step\n");
  // One shared block, four tails: three are left of eight, and one is the watermark.
  EXPECT_EQ(world.scheduler().stats().blocks_owned, 5);
  EXPECT_EQ(world.scheduler().stats().num_waiting, 1);
  world.Run("done\n run\n");
  EXPECT_EQ(world.ended("a").receipt.blocks_peak, 5);
  EXPECT_EQ(world.ended("a").receipt.preemptions, 0);
}

TEST(Choices, AnExactFitRunsAndOneBlockMoreIsRefused) {
  // 1 + 3 * (ceil((6 + 7 - 1) / 4) - 1) = 7 blocks.
  World world(SmallConfig(8, 4, 4));
  world.Run("add fits prompt=6 max=7 n=3\n add refused prompt=6 max=8 n=3\n run\n");
  EXPECT_EQ(world.Said(), "refused: refused\nfits: ended length\n");
  EXPECT_EQ(world.ended("fits").receipt.blocks_peak, 7);
  EXPECT_EQ(world.ended("fits").receipt.preemptions, 0);
}

TEST(Choices, AVictimLosesAllItsChoicesAtOnceAndGivesTheSameAnswers) {
  World world(SmallConfig(10, 4, 4));
  world.Run("add old prompt=8 max=20\n add group prompt=6 from=100 max=7 n=3\n step\n done\n");
  for (int i = 0; i < 40 && world.scheduler().stats().num_preemptions == 0; ++i) {
    world.Run("step\n done\n");
  }
  EXPECT_EQ(world.scheduler().stats().num_preemptions, 1);
  EXPECT_EQ(world.scheduler().stats().num_running, 1);
  world.Run("run\n");
  EXPECT_EQ(world.ended("old").receipt.preemptions, 0);
  EXPECT_GE(world.ended("group").receipt.preemptions, 1);
  EXPECT_EQ(world.ended("group").receipt.generated_tokens, 21);  // as each alone, by World
}

TEST(Choices, OneGrowsWithoutTakingFromAnotherOfItsOwnRequest) {
  World world(SmallConfig(14, 4, 4));
  world.Run("add a prompt=6 max=13 n=4\n run\n");
  EXPECT_EQ(world.Said(), "a: refused\n");
  world.Run("add a prompt=6 max=11 n=4\n run\n");
  EXPECT_EQ(world.Said(), "a: ended length\n");
  EXPECT_EQ(world.ended("a").receipt.preemptions, 0);
}

TEST(Choices, ACancelEndsAllOfThemAndLeavesNothingBehind) {
  for (const int steps : {0, 1, 2, 3}) {
    SchedulerConfig config = SmallConfig(30, 4, 4);
    config.max_in_flight = 2;
    World world(config);
    world.Run("add a prompt=6 max=9 n=3\n");
    for (int i = 0; i < steps; ++i) world.Run(i == 2 ? "done\n step\n" : "step\n");
    world.Run("cancel a\n");
    EXPECT_THAT(world.Said(), HasSubstr("a: ended cancelled\n")) << steps;
    world.Run("run\n");
    EXPECT_TRUE(world.scheduler().idle());
    const SchedulerStats stats = world.scheduler().stats();
    EXPECT_EQ(stats.blocks_free + stats.blocks_cached, 29) << steps;
  }
}

// The reader has stopped, so the plan that copies the prompt's end computes nothing of the request.
TEST(Choices, ABlockThatIsCopiedIntoWaitsForTheFenceOfTheCopy) {
  World world(SmallConfig(30, 4, 4));
  world.Run("add a prompt=6 max=9 n=2\n add b prompt=4 from=100 max=9\n step\n done\n pause a\n");
  world.Said();
  world.Run("step\n");
  EXPECT_EQ(world.Said(), "copy 2 of block 2 to 3\nb: compute 4..4, blocks 5, sample\n");
  world.Run("cancel a\n");
  EXPECT_EQ(world.scheduler().stats().blocks_retiring, 1);
  world.Run("done\n");
  EXPECT_EQ(world.scheduler().stats().blocks_retiring, 0);
}

TEST(Choices, AFailedStepTakesAllOfThemBackAndTheyEndTogetherAfterTheThird) {
  World world(SmallConfig(30, 4, 4));
  world.Run("add a prompt=6 max=9 n=3\n step\n done\n step\n fail\n");
  EXPECT_EQ(world.scheduler().stats().num_running, 0);
  world.Run("run\n");
  EXPECT_EQ(world.ended("a").receipt.generated_tokens, 27);
  world.Said();
  world.Run("add b prompt=6 from=40 max=9 n=3\n step\n fail\n step\n fail\n step\n fail\n");
  EXPECT_THAT(world.Said(), HasSubstr("b: ended failed\n"));
  EXPECT_TRUE(world.scheduler().idle());
}

// The plan of a step carries histories and block tables with a bound: what does not fit waits.
TEST(Choices, ManyThatWaitedForOnePromptAreToldInSeveralPlansWhenItIsLong) {
  SchedulerConfig config = SmallConfig(1'300, 4, 16);
  config.max_model_len = 5'000;
  config.max_num_batched_tokens = 5'100;
  World world(config);
  world.Run("add a prompt=4801 max=2 n=16\n run\n");
  EXPECT_EQ(world.ended("a").receipt.generated_tokens, 32);
  for (int i = 0; i < 16; ++i) {
    world.Run("add b" + std::to_string(i) + " prompt=4701 from=9 max=2\n");
  }
  world.Run("run\n");
  EXPECT_EQ(world.ended("b15").receipt.generated_tokens, 2);
}

// The copies for b's further choices are drafted and leave the draft with b, which gives way to a.
// That plan stays empty, so its job never comes: nothing of b may wait for it.
TEST(Choices, CopiesThatLeaveAnEmptyPlanKeepNoBlockWaiting) {
  SchedulerConfig config = SmallConfig(9, 4, 4);
  config.tenants = {{.name = "t", .reserve_blocks = 4, .isolated = true}};
  World world(config);
  world.Run("add a prompt=4 max=9\n add b from=50 prompt=1 max=3 n=3\n step\n complete\n");
  EXPECT_THAT(world.Said(), AllOf(HasSubstr("a: compute 0..3"), HasSubstr("b: compute 0..0")));
  world.Run("step\n");
  EXPECT_EQ(world.Said(), "nothing\n");
  world.Run("cancel a\n fence\n run\n");
  EXPECT_EQ(world.ended("b").receipt.generated_tokens, 9);
  EXPECT_EQ(world.scheduler().stats().blocks_retiring, 0);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
