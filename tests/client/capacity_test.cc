#include "client/capacity.h"

#include <gtest/gtest.h>

namespace pagoda::client {
namespace {

// 1,000 bytes of weights, blocks of 4 tokens at 10 bytes a token, requests of 9 tokens: two blocks,
// because the ninth token's KV is never written.
model::MemoryPlan Small(std::int32_t context = 9) {
  return {.weight_bytes = 1000,
          .kv_bytes_per_token = 10,
          .kv_bytes_per_block = 40,
          .block_size = 4,
          .max_model_len = context};
}

TEST(Capacity, CountsTheNullBlockOnceAndWholeBlocksOfEveryRequest) {
  const Capacity capacity = PlanCapacity(Small(), 3, 100, 10'000);
  EXPECT_EQ(capacity.kv_bytes_per_request, 80);
  EXPECT_EQ(capacity.pool_blocks, 7);
  EXPECT_EQ(capacity.pool_bytes, 280);
  EXPECT_EQ(capacity.total_bytes, 1280);
  EXPECT_EQ(capacity.free_bytes, 8720);
  EXPECT_TRUE(capacity.fits);
}

TEST(Capacity, FitsToTheByteAndNotOneByteLess) {
  EXPECT_TRUE(PlanCapacity(Small(), 3, 100, 1280).fits);
  const Capacity less = PlanCapacity(Small(), 3, 100, 1279);
  EXPECT_FALSE(less.fits);
  EXPECT_EQ(less.free_bytes, -1);
  EXPECT_EQ(less.largest_batch, 2);
}

// What it calls the longest and the largest does fit, and one more does not.
TEST(Capacity, TheLongestContextAndTheLargestBatchAreExactlyThat) {
  for (std::int64_t memory = 900; memory < 2500; memory += 7) {
    for (std::int64_t batch = 1; batch <= 4; ++batch) {
      const Capacity found = PlanCapacity(Small(), batch, 40, memory);
      const auto fits = [memory](std::int64_t context, std::int64_t requests) {
        return PlanCapacity(Small(static_cast<std::int32_t>(context)), requests, 40, memory).fits;
      };
      if (found.longest_context > 0) {
        EXPECT_TRUE(fits(found.longest_context, batch)) << memory;
      }
      if (found.longest_context < 40) {
        EXPECT_FALSE(fits(found.longest_context + 1, batch)) << memory;
      }
      if (found.largest_batch > 0) {
        EXPECT_TRUE(fits(9, found.largest_batch)) << memory;
      }
      EXPECT_FALSE(fits(9, found.largest_batch + 1)) << memory;
    }
  }
}

TEST(Capacity, NoBatchIsLargerThanAServerRuns) {
  EXPECT_EQ(PlanCapacity(Small(), 1, 100, std::int64_t{1} << 40).largest_batch, 4096);
  EXPECT_EQ(PlanCapacity(Small(), 1, 100, 1000 + 40 + 4096 * 80).largest_batch, 4096);
  EXPECT_EQ(PlanCapacity(Small(), 1, 100, 1000 + 40 + 4096 * 80 - 1).largest_batch, 4095);
}

TEST(Capacity, WeightsThatDoNotFitLeaveNoRoomAtAll) {
  const Capacity capacity = PlanCapacity(Small(), 1, 100, 999);
  EXPECT_EQ(capacity.blocks_that_fit, 0);
  EXPECT_EQ(capacity.longest_context, 0);
  EXPECT_EQ(capacity.largest_batch, 0);
}

}  // namespace
}  // namespace pagoda::client
