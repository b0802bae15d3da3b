#include "kernels/cuda/ops/decode_plan.h"

#include "gtest/gtest.h"

namespace pagoda::kernels::cuda {
namespace {

TEST(DecodePlan, CutsContextsAtAbsolutePositionsAndSharesThemOutInOrder) {
  const std::vector<std::uint32_t> first(40, 7), second(1, 3);
  const std::vector<AttentionWork> work = {
      {.first_row = 4, .num_tokens = 1, .first_position = 599, .block_table = first},
      {.first_row = 9, .num_tokens = 1, .first_position = 0, .block_table = second}};
  DecodePlan plan;
  plan.Make(work, 16, 3);
  ASSERT_EQ(plan.slices.size(), 4u);
  EXPECT_EQ(plan.slices[1].first, 256);
  EXPECT_EQ(plan.slices[1].end, 512);
  EXPECT_EQ(plan.slices[2].end, 600);
  EXPECT_EQ(plan.slices[3].row, 9);
  EXPECT_EQ(plan.slices[3].first_table_entry, 38);
  EXPECT_EQ(plan.block_table.size(), 39u);
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[0].num_slices, 3);
  EXPECT_EQ(plan.rows[1].first_slice, 3);
  ASSERT_EQ(plan.shares.size(), 3u);
  std::int32_t next = 0;
  for (const DecodeShare& share : plan.shares) {
    EXPECT_EQ(share.first_slice, next);
    EXPECT_GE(share.num_slices, 1);
    next += share.num_slices;
  }
  EXPECT_EQ(next, 4);
}

TEST(DecodePlan, HasNoMoreSharesThanSlices) {
  const std::vector<std::uint32_t> table(1, 3);
  const std::vector<AttentionWork> work = {
      {.first_row = 0, .num_tokens = 1, .first_position = 5, .block_table = table}};
  DecodePlan plan;
  plan.Make(work, 16, 264);
  EXPECT_EQ(plan.shares.size(), 1u);
}

}  // namespace
}  // namespace pagoda::kernels::cuda
