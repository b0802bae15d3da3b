// How much of the pool requests can use, counted with the real scheduler and its block tables. The
// figures are in docs/guarantees.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "tests/scheduler/dice.h"
#include "tests/scheduler/token_mill.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr std::uint64_t kSeed = 20'262;
constexpr std::uint32_t kVocabulary = 1'000'000;

// Tokens of a request that takes every block of the pool: the last one's KV is never written.
std::int32_t ExactFit(const SchedulerConfig& config) {
  return Scheduler::CapacityBlocks(config) * config.block_size + 1;
}

struct Delivery {
  int whole = 0, preemptions = 0;
};

// Some exact fits, all at once, with beginnings in common. Each prompt is between one token and all
// but one.
Delivery AskForExactFits(const SchedulerConfig& config, int num_requests, Dice& dice) {
  TokenMill mill(config);
  const std::int32_t all = ExactFit(config);
  for (int i = 0; i < num_requests; ++i) {
    const std::int32_t prompt = i == 0 ? all - 1 : 1 + dice.Roll(all - 1);
    mill.Add(0, static_cast<base::TokenId>(1 + 100'000 * dice.Roll(3)), prompt, all - prompt);
  }
  Delivery delivery;
  int num_ended = 0;
  while (num_ended < num_requests && mill.Step()) {
    mill.scheduler().CheckInvariants();
    for (const FinishEvent& event : mill.finished()) {
      ++num_ended;
      delivery.preemptions += event.receipt.preemptions;
      delivery.whole += event.reason == FinishReason::kLength &&
                        event.receipt.generated_tokens == event.request.max_tokens() &&
                        event.request.choice(0).num_known() == all;
    }
  }
  return delivery;
}

TEST(PoolUse, EveryRequestThatFillsThePoolExactlyIsDeliveredWhole) {
  Dice dice(kSeed);
  constexpr int kRequests = 8;
  int num_requests = 0;
  Delivery all;
  for (const std::int32_t block_size : {1, 2, 3, 4, 8, 16}) {
    for (const std::int32_t pool_blocks : {3, 4, 5, 9, 17, 34, 65}) {
      for (const std::int32_t slots : {1, 4}) {
        SchedulerConfig config = SmallConfig(pool_blocks, block_size, slots);
        config.max_model_len = ExactFit(config) + 1;
        const Delivery delivery = AskForExactFits(config, kRequests, dice);
        EXPECT_EQ(delivery.whole, kRequests)
            << pool_blocks << " blocks of " << block_size << ", " << slots << " slots";
        all.whole += delivery.whole;
        all.preemptions += delivery.preemptions;
        num_requests += kRequests;
      }
    }
  }
  std::printf("exact fits: %d of %d delivered whole, %d preemptions on the way\n", all.whole,
              num_requests, all.preemptions);
  EXPECT_EQ(all.whole, num_requests);
  EXPECT_GT(all.preemptions, 0);
}

TEST(PoolUse, OneTokenMoreThanAnExactFitIsRefusedWithBothNumbers) {
  for (const std::int32_t block_size : {1, 3, 4, 16}) {
    for (const std::int32_t pool_blocks : {3, 9, 34}) {
      SchedulerConfig config = SmallConfig(pool_blocks, block_size, 2);
      const std::int32_t all = ExactFit(config);
      config.max_model_len = all + 1;
      const ModelLimits limits = LimitsFor(config, kVocabulary);
      RequestSketch sketch;
      sketch.id = 1;
      sketch.prompt = Ascending(1, 2);
      sketch.fields.max_tokens = all - 2;
      EXPECT_TRUE(MakeRequest(sketch, limits, config, 0).ok());
      sketch.fields.max_tokens = all - 1;
      const auto refused = MakeRequest(sketch, limits, config, 0);
      ASSERT_FALSE(refused.ok()) << pool_blocks << " blocks of " << block_size;
      const std::string said(refused.status().message());
      EXPECT_NE(said.find(std::to_string(pool_blocks)), std::string::npos) << said;
      EXPECT_NE(said.find(std::to_string(pool_blocks - 1)), std::string::npos) << said;
    }
  }
}

// Token slots that running requests hold, and those of them that neither the prompt nor a token of
// a planned step fills.
struct Slots {
  std::int64_t held = 0, unfilled = 0, lengths = 0, sequences = 0;

  void Add(const SchedulerState& state) {
    for (const base::SlotId slot : state.running) {
      const std::int32_t size = state.tables.size(slot) * state.config.block_size;
      const Sequence& sequence = state.SequenceIn(slot);
      held += size;
      unfilled += size - std::max(sequence.num_planned, sequence.prompt_length);
      lengths += sequence.num_known;
      ++sequences;
    }
  }
  double mean_length() const {
    return static_cast<double>(lengths) / static_cast<double>(sequences);
  }
  double waste() const { return static_cast<double>(unfilled) / static_cast<double>(held); }
};

TEST(PoolUse, UnfilledSlotsOfLastBlocksAreFewAtAMeanLengthOf256) {
  SchedulerConfig config = SmallConfig(2'400, 16, 64);
  config.max_num_batched_tokens = 512;
  config.max_model_len = 1'024;
  TokenMill mill(config);
  Dice dice(kSeed);
  base::TokenId first = 1;
  Slots slots;
  for (int step = 0; step < 4'000; ++step) {
    while (mill.state().queues[0].size() < 8) {
      mill.Add(0, first, 16 + dice.Roll(320), 16 + dice.Roll(240));
      first = (first + 977) % 900'000;
    }
    ASSERT_TRUE(mill.Step());
    if (step >= 400) slots.Add(mill.state());
  }
  std::printf("%.2f %% of %ld held token slots are unfilled, mean length %.1f, seed %lu\n",
              100 * slots.waste(), slots.held, slots.mean_length(), kSeed);
  EXPECT_GE(slots.mean_length(), 256);
  EXPECT_LT(slots.mean_length(), 300);  // longer ones would make it easy
  EXPECT_LE(slots.waste(), 0.04);
  EXPECT_GT(slots.waste(), 0.01);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
