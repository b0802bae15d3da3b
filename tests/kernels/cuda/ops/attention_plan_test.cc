#include "kernels/cuda/ops/attention_plan.h"

#include "gtest/gtest.h"

namespace pagoda::kernels::cuda {
namespace {

TEST(AttentionPlan, CutsPackedRowsIntoTilesLongestContextFirst) {
  const std::vector<std::uint32_t> first = {7, 8, 9}, second = {4, 3, 2, 1};
  const std::vector<AttentionWork> work = {
      {.first_row = 0, .num_tokens = 1, .first_position = 33, .block_table = first},
      {.first_row = 5, .num_tokens = 0, .first_position = 0, .block_table = {}},
      {.first_row = 1, .num_tokens = 30, .first_position = 20, .block_table = second}};
  AttentionPlan plan;
  plan.Make(work, 16, 3, 64);
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.items[1].first_row, 1);
  EXPECT_EQ(plan.items[1].first_table_entry, 3);
  // 90 packed rows of the second item: tokens 0 to 21, and the rest.
  ASSERT_EQ(plan.tiles.size(), 3u);
  EXPECT_EQ(plan.tiles[0].item, 1);
  EXPECT_EQ(plan.tiles[0].first_packed_row, 64);
  EXPECT_EQ(plan.tiles[1].item, 1);
  EXPECT_EQ(plan.tiles[1].first_packed_row, 0);
  EXPECT_EQ(plan.tiles[2].item, 0);
  EXPECT_EQ(plan.block_table, (std::vector<std::uint32_t>{7, 8, 9, 4, 3, 2, 1}));
}

TEST(AttentionPlan, TakesNoTableEntryPastTheContext) {
  const std::vector<std::uint32_t> table = {7, 8, 9};
  const std::vector<AttentionWork> work = {
      {.first_row = 0, .num_tokens = 2, .first_position = 14, .block_table = table}};
  AttentionPlan plan;
  plan.Make(work, 16, 1, 64);
  EXPECT_EQ(plan.block_table, (std::vector<std::uint32_t>{7}));
  plan.Make({}, 16, 1, 64);
  EXPECT_TRUE(plan.tiles.empty());
}

}  // namespace
}  // namespace pagoda::kernels::cuda
