#include "model/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::model {
namespace {

// SmolLM2-135M in bf16: 30 layers, 3 KV heads of 64.
const base::KvGeometry kGeometry = {.groups = {{.num_layers = 30,
                                                .window_tokens = std::nullopt,
                                                .num_kv_heads = 3,
                                                .head_size = 64,
                                                .type = base::KvType::kBf16}},
                                    .block_size = 16};

TEST(MemoryPlan, CountsKeysAndValuesOfAllLayers) {
  const MemoryPlan plan = PlanMemory(kGeometry, 1000, 8192);
  EXPECT_EQ(plan.kv_bytes_per_token, 2 * 30 * 3 * 64 * 2);
  EXPECT_EQ(plan.kv_bytes_per_block, 16 * plan.kv_bytes_per_token);
  EXPECT_EQ(plan.KvBytes(3), 3 * plan.kv_bytes_per_block);
}

TEST(MemoryPlan, RoundsTokensUpAndBytesDown) {
  const MemoryPlan plan = PlanMemory(kGeometry, 0, 8193);
  EXPECT_EQ(plan.BlocksFor(0), 0);
  EXPECT_EQ(plan.BlocksFor(1), 1);
  EXPECT_EQ(plan.BlocksFor(16), 1);
  EXPECT_EQ(plan.BlocksFor(17), 2);
  EXPECT_EQ(plan.BlocksIn(plan.kv_bytes_per_block - 1), 0);
  EXPECT_EQ(plan.BlocksIn(2 * plan.kv_bytes_per_block), 2);
  EXPECT_EQ(plan.BlocksIn(-5), 0);
}

TEST(MemoryPlan, TheLastTokenOfAFullRequestNeedsNoSlot) {
  EXPECT_EQ(PlanMemory(kGeometry, 0, 33).BlocksPerFullRequest(), 2);
  EXPECT_EQ(PlanMemory(kGeometry, 0, 34).BlocksPerFullRequest(), 3);
  EXPECT_EQ(PlanMemory(kGeometry, 0, 1).BlocksPerFullRequest(), 1);
}

TEST(MemoryPlan, DescribesTokensWithoutTheNullBlock) {
  EXPECT_THAT(PlanMemory(kGeometry, 5 << 20, 33).Describe(11),
              testing::AllOf(testing::HasSubstr("weights 5 MiB"), testing::HasSubstr("160 tokens"),
                             testing::HasSubstr("takes 2 blocks")));
}

}  // namespace
}  // namespace pagoda::model
