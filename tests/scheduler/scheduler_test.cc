#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "tests/scheduler/world.h"

// Stories: a script in, the plan as text out (tests/scheduler/world.h). Block 0 is the null block,
// so a pool of 9 has 8 to use.
namespace pagoda::scheduler::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Scheduler, ComputesAPromptInBlockAlignedChunksThenOneTokenAStep) {
  SchedulerConfig config = SmallConfig(9, 4, 2);
  config.max_num_batched_tokens = 10;
  World world(config);
  world.Run("add a prompt=11 max=3\n step\n done\n step\n done\n step\n done\n step\n done\n");
  EXPECT_EQ(world.Said(),
            "a: compute 0..7, blocks 1 2 3\n"
            "a: compute 8..10, sample\n"
            "a: compute 11..11, sample\n"
            "a: compute 12..12, blocks 4, sample\n"
            "a: ended length\n");
  EXPECT_TRUE(world.scheduler().idle());
}

TEST(Scheduler, PlansTheNextStepWhileOneIsInFlightAndDropsWhatOvershoots) {
  SchedulerConfig config = SmallConfig(9, 4, 2);
  config.max_in_flight = 2;
  World world(config);
  world.Run("add a prompt=4 max=3\n step\n step\n step\n done\n step\n cancel a\n done\n done\n");
  EXPECT_EQ(world.Said(),
            "a: compute 0..3, blocks 1, sample\n"
            "a: compute 4..4, blocks 2, sample\n"
            "nothing\n"
            "a: compute 5..5, sample\n"
            "a: ended cancelled\n");
  EXPECT_EQ(world.ended("a").receipt.generated_tokens, 1);
  EXPECT_EQ(world.ended("a").receipt.discarded_tokens, 2);
  EXPECT_EQ(world.scheduler().stats().blocks_free, 7);  // one full block stays cached
  EXPECT_EQ(world.scheduler().stats().blocks_cached, 1);
}

// Admissions leave the watermark (here one block), so of five blocks two prompts of two leave one
// to grow into.
TEST(Scheduler, YoungestIsPreemptedWhenAnOlderRequestNeedsABlock) {
  World world(SmallConfig(6, 4, 2));
  world.Run(
      "add a prompt=8 max=6\n add b prompt=7 from=100 max=5\n step\n done\n step\n done\n step\n");
  EXPECT_EQ(world.Said(),
            "a: compute 0..7, blocks 1 2, sample\n"
            "b: compute 0..6, blocks 3 4, sample\n"
            "a: compute 8..8, blocks 5, sample\n"
            "b: compute 7..7, sample\n"
            "a: compute 9..9, sample\n");  // b needs a block, may not take a's, and keeps its own
  world.Run("done\n step\n done\n step\n done\n");
  EXPECT_EQ(world.scheduler().stats().num_preemptions, 0);
  world.Said();
  world.Run("step\n done\n");
  EXPECT_EQ(world.Said(), "a: compute 12..12, blocks 4, sample\na: ended length\n");
  EXPECT_EQ(world.scheduler().stats().num_preemptions, 1);
  world.Run("run\n");
  EXPECT_EQ(world.ended("b").receipt.preemptions, 1);
}

TEST(Scheduler, APausedRequestIsTheFirstVictimWhateverItsAge) {
  World world(SmallConfig(6, 4, 2));
  world.Run("add a prompt=8 max=5\n add b prompt=7 from=100 max=8\n step\n done\n pause a\n");
  for (int i = 0; i < 5; ++i) world.Run("step\n done\n");
  EXPECT_EQ(world.scheduler().stats().num_preemptions, 0);
  world.Run("step\n done\n");
  EXPECT_EQ(world.scheduler().stats().num_preemptions, 1);
  world.Run("run\n");
  EXPECT_THAT(world.Said(), HasSubstr("b: ended length\n"));
  world.Run("run\n resume a\n run\n");
  EXPECT_EQ(world.Said(), "a: ended length\n");
  EXPECT_EQ(world.ended("a").receipt.preemptions, 1);
}

TEST(Scheduler, AnAdmissionKeepsTheTimeOfTheFirstPlanWithIt) {
  World world(SmallConfig(6, 4, 2));
  world.Run("add a prompt=8 max=6\n now 5\n add b prompt=7 from=100 max=5\n step\n now 50\n run\n");
  EXPECT_EQ(world.ended("b").receipt.preemptions, 1);
  EXPECT_EQ(world.ended("a").admitted_at.nanos(), 5);
  EXPECT_EQ(world.ended("b").admitted_at.nanos(), 5);
}

TEST(Scheduler, D3AWhollyCachedPromptComputesOneTokenWithoutWritingIt) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add cold prompt=8 max=2\n run\n");
  world.Run("add again prompt=8 max=2\n step\n");
  EXPECT_EQ(world.Said(),
            "cold: ended length\n"
            "again: compute 7..7, 1 without KV, blocks 1 2, sample\n");
  world.Run("run\n add longer prompt=12 max=2\n add shorter prompt=7 max=2\n run\n");
  EXPECT_TRUE(std::ranges::equal(world.answer("cold"), world.answer("again")));
  EXPECT_EQ(world.ended("cold").receipt.cached_tokens, 0);
  EXPECT_EQ(world.ended("again").receipt.cached_tokens, 7);
  EXPECT_EQ(world.ended("longer").receipt.cached_tokens, 8);
  EXPECT_EQ(world.ended("shorter").receipt.cached_tokens, 6);  // one block, and two tokens copied
}

TEST(Scheduler, APartialLastBlockIsReusedByCopy) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add a prompt=6 max=1\n run\n add b prompt=7 max=1\n step\n done\n");
  EXPECT_EQ(world.Said(),
            "a: ended length\n"
            "copy 2 of block 2 to 3\n"
            "b: compute 6..6, blocks 1 3, sample\n"
            "b: ended length\n");
}

TEST(Scheduler, ASaltSeparatesAndTheSameSaltShares) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add a prompt=9 max=1 salt=x\n run\n");
  world.Run(
      "add b prompt=9 max=1 salt=y\n add c prompt=9 max=1\n add d prompt=9 max=1 salt=x\n run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 0);
  EXPECT_EQ(world.ended("c").receipt.cached_tokens, 0);
  EXPECT_EQ(world.ended("d").receipt.cached_tokens, 8);
}

TEST(Scheduler, ARequestThatSkipsTheCacheComputesItsPromptAndLeavesItForOthers) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add a prompt=9 max=1 skip=1\n run\n add b prompt=9 max=1 skip=1\n");
  world.Said();
  world.Run("step\n");
  EXPECT_THAT(world.Said(), HasSubstr("b: compute 0..8"));
  world.Run("run\n add c prompt=9 max=1\n run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 0);
  EXPECT_EQ(world.ended("c").receipt.cached_tokens, 8);
}

// What another is just computing is not waited for.
TEST(Scheduler, ARequestThatSkipsTheCacheWaitsForNobody) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add a prompt=9 max=2\n add b prompt=9 max=2 skip=1\n");
  world.Said();
  world.Run("step\n");
  EXPECT_THAT(world.Said(), AllOf(HasSubstr("a: compute 0..8"), HasSubstr("b: compute 0..8")));
  world.Run("run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 0);
}

// The guard in use: a block is found only after its job is complete, and one that needs it waits a
// step for it.
TEST(Scheduler, D5EqualPromptsSentAtOnceAreComputedOnce) {
  SchedulerConfig config = SmallConfig(80, 4, 16);
  config.max_num_batched_tokens = 200;
  World world(config);
  for (int i = 0; i < 16; ++i) world.Run("add r" + std::to_string(i) + " prompt=9 max=3\n");
  world.Run("run\n");
  std::int32_t cached = 0;
  for (int i = 0; i < 16; ++i) {
    const std::string name = "r" + std::to_string(i);
    EXPECT_TRUE(std::ranges::equal(world.answer("r0"), world.answer(name)));
    cached += world.ended(name).receipt.cached_tokens;
  }
  EXPECT_EQ(cached, 15 * 8);
}

// Each answer is compared with the solo run by the world itself.
TEST(Scheduler, D5PromptsSentAtOnceWithOneBeginningAndDifferentEndsShareTheBeginning) {
  SchedulerConfig config = SmallConfig(80, 4, 16);
  config.max_num_batched_tokens = 200;
  World world(config);
  for (int length = 9; length < 17; ++length) {
    world.Run(absl::StrCat("add r", length, " max=3 prompt=", length, "\n"));
  }
  world.Run("run\n");
  int num_shared = 0;
  for (int length = 9; length < 17; ++length) {
    num_shared += world.ended(absl::StrCat("r", length)).receipt.cached_tokens >= 8;
  }
  EXPECT_EQ(num_shared, 7);
}

TEST(Scheduler, D3APreemptedPromptThatEndsOnABlockGoesOnAsIfItHadNot) {
  for (const int length : {8, 12, 7}) {
    World world(SmallConfig(8, 4, 2));
    world.Run(absl::StrCat("add old prompt=4 from=50 max=22\n add young max=14 prompt=", length,
                           "\n run\n"));
    EXPECT_GE(world.ended("young").receipt.preemptions, 1) << length;
    EXPECT_EQ(world.ended("young").receipt.prompt_tokens, length);
    EXPECT_EQ(world.answer("young").size(), 14u) << length;
  }
}

TEST(Scheduler, D7ARecycledBlockIsNeverFoundUnderItsOldKeyAndTheIndexStaysBounded) {
  World world(SmallConfig(5, 4, 1));
  for (int turn = 0; turn < 500; ++turn) {
    const std::string name = std::to_string(turn);
    const int from = turn % 3 == 0 ? 1 : turn % 3 == 1 ? 100 : 200 + turn;
    world.Run("add n" + name + " prompt=13 from=" + std::to_string(from) + " max=2\n run\n");
    ASSERT_LE(world.scheduler().stats().blocks_cached, 4);
  }
  EXPECT_GT(world.scheduler().stats().num_evictions, 400);
}

TEST(Scheduler, D8AFlushDuringAReplyChangesNoReplyAndEndsEveryOldHit) {
  World world(SmallConfig(40, 4, 4));
  world.Run("add a prompt=9 max=6\n step\n done\n step\n done\n flush\n");
  EXPECT_THAT(world.Said(), HasSubstr("dropped 0\n")) << "what it holds goes when it ends";
  world.Run("run\n add b prompt=9 max=2\n run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 0);
  world.Run("add c prompt=9 max=2\n run\n");
  EXPECT_EQ(world.ended("c").receipt.cached_tokens, 8);
}

// By a plan that does nothing else, when there is nothing else to do.
TEST(Scheduler, WhatAFlushFreesIsScrubbedWithoutWaitingForAHandOut) {
  World world(SmallConfig(20, 4, 4));
  world.Run("add a prompt=8 max=1\n run\n flush\n step\n done\n step\n");
  EXPECT_EQ(world.Said(), "a: ended length\ndropped 2\nzero 2 blocks\nnothing\n");
  // What is held when the flush comes goes when its holder does; the third block had no entry.
  world.Run("add b prompt=8 max=9\n step\n done\n step\n done\n flush\n cancel b\n");
  world.Said();
  world.Run("step\n done\n step\n");
  EXPECT_EQ(world.Said(), "zero 2 blocks\nnothing\n");
  // Blocks handed out again before that are zeroed by their hand-out.
  world.Run("add c prompt=8 max=1\n run\n flush\n add d prompt=8 max=1\n step\n done\n step\n");
  EXPECT_THAT(world.Said(), HasSubstr("d: compute 0..7, blocks"));
}

TEST(Scheduler, E1APromptThatCanNeverFitIsRefusedAndTheShortOnesRun) {
  SchedulerConfig config = SmallConfig(41, 16, 4);
  config.max_model_len = 2'000;
  World world(config);
  world.Run("add long prompt=900 max=8\n");
  EXPECT_EQ(world.Said(), "long: refused\n");
  for (int i = 0; i < 5; ++i) world.Run("add s" + std::to_string(i) + " prompt=20 max=3\n");
  world.Run("run\n");
  EXPECT_EQ(world.ended("s4").reason, FinishReason::kLength);
}

TEST(Scheduler, E3TwoPromptsThatNeedMostOfThePoolFinishOneAfterTheOther) {
  SchedulerConfig config = SmallConfig(9, 4, 2);
  config.max_num_batched_tokens = 8;
  World world(config);
  world.Run("add a prompt=23 max=2\n add b prompt=23 from=500 max=2\n run\n");
  EXPECT_EQ(world.Said(), "a: ended length\nb: ended length\n");
}

TEST(Scheduler, E4PreemptionsAreBoundedAndCountedAndAllFinish) {
  World world(SmallConfig(9, 4, 3));
  for (int i = 0; i < 3; ++i) {
    world.Run("add g" + std::to_string(i) + " prompt=4 from=" + std::to_string(100 * i + 1) +
              " max=17\n");
  }
  for (int i = 0; i < 30; ++i) {
    world.Run("add m" + std::to_string(i) + " prompt=" + std::to_string(1 + i % 9) +
              " max=" + std::to_string(1 + i % 7) + "\n");
  }
  world.Run("run\n");
  EXPECT_TRUE(world.scheduler().idle());
  std::int64_t counted = 0;
  for (int i = 0; i < 3; ++i) {
    counted += world.ended("g" + std::to_string(i)).receipt.preemptions;
    EXPECT_LE(world.ended("g" + std::to_string(i)).receipt.preemptions, 6);
  }
  for (int i = 0; i < 30; ++i) counted += world.ended("m" + std::to_string(i)).receipt.preemptions;
  EXPECT_EQ(counted, world.scheduler().stats().num_preemptions);
  EXPECT_GT(counted, 0);
}

TEST(Scheduler, E6ALongPromptStopsNeitherRunningRepliesNorAShortOne) {
  SchedulerConfig config = SmallConfig(1'200, 4, 8);
  config.max_num_batched_tokens = 64;
  World world(config);
  for (int i = 0; i < 3; ++i) {
    world.Run("add r" + std::to_string(i) + " prompt=4 from=" + std::to_string(10 * i + 1) +
              " max=90\n");
  }
  world.Run(
      "step\n done\n add long prompt=4096 max=2\n step\n done\n add short prompt=8 from=900 "
      "max=1\n");
  world.Said();
  world.Run("step\n done\n");
  const std::string second = world.Said();
  for (const char* name : {"r0: compute", "r1: compute", "r2: compute", "long: compute",
                           "short: compute 0..7", "short: ended length"}) {
    EXPECT_THAT(second, HasSubstr(name));
  }
  world.Run("run\n");
  EXPECT_EQ(world.ended("r2").receipt.decode_steps, 89);
  EXPECT_EQ(world.ended("long").reason, FinishReason::kLength);
}

TEST(Scheduler, E7AReplyReachesTheContextLimitAndEndsWithLength) {
  SchedulerConfig config = SmallConfig(17, 4, 2);
  config.max_model_len = 32;
  World world(config);
  world.Run(
      "add edge prompt=31 max=1\n add most prompt=1 max=31\n add over prompt=32 max=1\n run\n");
  EXPECT_EQ(world.Said(), "over: refused\nedge: ended length\nmost: ended length\n");
  EXPECT_EQ(world.answer("most").size(), 31u);
}

TEST(Scheduler, E9CancelledRequestsLeaveNothingBehind) {
  World world(SmallConfig(33, 4, 4));
  for (int i = 0; i < 250; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i),
                      c = "c" + std::to_string(i);
    const std::string from = std::to_string(1 + i % 40);
    world.Run(absl::StrCat("add ", a, " prompt=20 from=", from, " max=9\n add ", b,
                           " prompt=60 from=7 max=9\n add ", c,
                           " prompt=4 max=2\n step\n done\n cancel ", a, "\n step\n cancel ", b,
                           "\n cancel ", b, "\n done\n run\n"));
    ASSERT_TRUE(world.scheduler().idle());
  }
  const SchedulerStats stats = world.scheduler().stats();
  EXPECT_EQ(stats.blocks_free + stats.blocks_cached, 32);
  EXPECT_EQ(stats.num_waiting, 0);
}

TEST(Scheduler, E11APreemptedReplyIsTheSameAndNothingIsShownTwice) {
  for (const int shown : {1, 3, 5}) {
    World world(SmallConfig(8, 4, 2));
    world.Run("add old prompt=4 from=50 max=22\n add young prompt=9 max=10\n");
    for (int i = 0; i < shown; ++i) world.Run("step\n done\n");
    world.Run("run\n");
    EXPECT_GE(world.ended("young").receipt.preemptions, 1);
    EXPECT_EQ(world.ended("young").receipt.generated_tokens, 10);
    EXPECT_EQ(world.ended("young").receipt.prompt_tokens, 9);
  }
}

TEST(Scheduler, AFailedStepIsTriedAgainThenAloneThenItsRequestEnds) {
  World world(SmallConfig(20, 4, 3));
  world.Run("add a prompt=5 max=3\n add b prompt=5 from=100 max=3\n step\n fail\n step\n");
  EXPECT_THAT(world.Said(), HasSubstr("a: compute 0..4, blocks"));
  world.Run("fail\n");
  world.Said();
  world.Run("step\n");
  const std::string alone = world.Said();
  EXPECT_THAT(alone, HasSubstr("a: compute 0..4"));
  EXPECT_THAT(alone, ::testing::Not(HasSubstr("b: compute")));
  world.Run("fail\n");
  EXPECT_EQ(world.Said(), "a: ended failed\n");
  world.Run("run\n");
  EXPECT_EQ(world.Said(), "b: ended length\n");
}

TEST(Scheduler, DeadlinesEndWaitingAndRunningRequests) {
  World world(SmallConfig(20, 4, 1));
  world.Run("add a prompt=5 max=30 deadline=10\n step\n done\n add b prompt=5 max=3 deadline=5\n");
  EXPECT_EQ(world.scheduler().NextDeadline(), base::Instant::FromNanos(5));
  world.Said();
  world.Run("now 5\n step\n done\n now 10\n step\n");
  EXPECT_EQ(world.Said(),
            "a: compute 5..5, sample\nb: ended deadline\nnothing\na: ended deadline\n");
  EXPECT_FALSE(world.ended("b").was_admitted);
  EXPECT_TRUE(world.ended("a").was_admitted);
}

TEST(Scheduler, WaitingRequestsGoByPriorityThenDeadlineThenArrival) {
  World world(SmallConfig(20, 4, 1));
  world.Run(
      "add a prompt=5 max=1\n add b prompt=5 max=1 deadline=900\n add c prompt=5 max=1 "
      "deadline=800\n"
      "add d prompt=5 max=1 priority=-1\n add e prompt=5 max=1\n run\n");
  EXPECT_EQ(
      world.Said(),
      "d: ended length\nc: ended length\nb: ended length\na: ended length\ne: ended length\n");
}

TEST(Scheduler, AWaitingRequestIsOvertakenSixteenTimesAtMost) {
  World world(SmallConfig(20, 4, 1));
  world.Run("add patient prompt=5 max=1 priority=5\n");
  for (int i = 0; i < 20; ++i) world.Run("add f" + std::to_string(i) + " prompt=5 max=1\n");
  world.Run("run\n");
  const std::string said = world.Said();
  EXPECT_LT(said.find("f15: ended"), said.find("patient: ended"));
  EXPECT_LT(said.find("patient: ended"), said.find("f16: ended"));
}

TEST(Scheduler, I4TheContextIsNotDividedByTheNumberOfSlots) {
  SchedulerConfig config = SmallConfig(140, 16, 10);
  config.max_model_len = 2'048;
  config.max_num_batched_tokens = 512;
  World world(config);
  world.Run("add short prompt=300 max=4\n add long prompt=2000 max=48\n run\n");
  EXPECT_EQ(world.answer("short").size(), 4u);
  EXPECT_EQ(world.answer("long").size(), 48u);
  world.Run("add over prompt=2000 max=49 from=9\n");
  EXPECT_NE(world.Said().find("over: refused"), std::string::npos);
}

TEST(Scheduler, RefusesAConfigThatCouldHangWithTheNumbers) {
  const auto field = [](auto change) {
    SchedulerConfig config = SmallConfig(9, 4, 2);
    change(config);
    return base::FieldOf(Scheduler::Create(config).status());
  };
  EXPECT_EQ(field([](SchedulerConfig&) {}), "");
  EXPECT_EQ(field([](SchedulerConfig& c) { c.max_num_batched_tokens = 5; }),
            "max_num_batched_tokens");
  EXPECT_EQ(field([](SchedulerConfig& c) { c.max_logit_rows_per_step = 1; }),
            "max_logit_rows_per_step");
  EXPECT_EQ(field([](SchedulerConfig& c) { c.pool_blocks_per_group = {1}; }), "pool_blocks");
  EXPECT_EQ(field([](SchedulerConfig& c) { c.max_attention_chunks_per_step = 1; }),
            "max_attention_chunks_per_step");
  EXPECT_EQ(field([](SchedulerConfig& c) { c.key_domain.block_size = 8; }),
            "key_domain.block_size");
  EXPECT_EQ(field([](SchedulerConfig& c) { c.max_namespaces = 1; }), "max_namespaces");
  SchedulerConfig two = SmallConfig(9, 4, 2);
  two.pool_blocks_per_group = {9, 9};
  EXPECT_EQ(Scheduler::Create(two).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
