#include "model/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {
namespace {

using fixtures::TinyGguf;
using fixtures::TinyOptions;
using testing::HasSubstr;

class LoadPlanTest : public testing::Test {
 protected:
  absl::StatusOr<LoadPlan> Plan(const LoadOptions& options, const TinyOptions& tiny = {}) {
    bytes_ = TinyGguf(tiny);
    file_ = *formats::GgufFile::Parse(bytes_, "tiny");
    checkpoint_ = *Checkpoint::Over(*file_);
    return PlanLoad(*checkpoint_, options, kernels::PackLayout::kColumnPanels);
  }
  std::string Refusal(const LoadOptions& options, const TinyOptions& tiny = {}) {
    return std::string(Plan(options, tiny).status().message());
  }

  std::vector<std::byte> bytes_;
  std::unique_ptr<formats::GgufFile> file_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

// TINY has 2 layers, 2 KV heads of 32: 2 * 2 * 2 * 32 values a token.
TEST_F(LoadPlanTest, KeysAndValuesTakeTheTypeThatWasChosen) {
  const auto bf16 = Plan({.block_size = 4});
  ASSERT_TRUE(bf16.ok()) << bf16.status();
  EXPECT_EQ(bf16->memory.kv_bytes_per_token, 512);
  EXPECT_EQ(bf16->memory.kv_bytes_per_block, 2048);
  EXPECT_EQ(bf16->memory.max_model_len, 256);
  const auto f32 = Plan({.kv_cache_dtype = "f32", .block_size = 8, .max_model_len = 100});
  ASSERT_TRUE(f32.ok()) << f32.status();
  EXPECT_EQ(f32->memory.kv_bytes_per_token, 1024);
  EXPECT_EQ(f32->memory.kv_bytes_per_block, 8192);
  EXPECT_EQ(f32->memory.max_model_len, 100);
}

TEST_F(LoadPlanTest, ActivationsFollowTheWeights) {
  EXPECT_EQ(Plan({})->activation_dtype, "int8");
  EXPECT_EQ(Plan({.activation_dtype = "f32"})->activation_dtype, "f32");
  const TinyOptions floats{.weight_type = formats::GgufType::kBf16,
                           .embedding_type = formats::GgufType::kBf16};
  EXPECT_EQ(Plan({}, floats)->activation_dtype, "f32");
  EXPECT_THAT(Refusal({.activation_dtype = "int8"}, floats), HasSubstr("needs quantized weights"));
}

TEST_F(LoadPlanTest, AChoiceThatCannotBeIsRefusedByName) {
  EXPECT_THAT(Refusal({.activation_dtype = "bf16"}),
              HasSubstr("activation-dtype is 'bf16', which is not built"));
  EXPECT_THAT(Refusal({.activation_dtype = "int3"}), HasSubstr("'int3'; expected"));
  EXPECT_THAT(Refusal({.kv_cache_dtype = "fp8"}), HasSubstr("'fp8'; expected"));
  EXPECT_THAT(Refusal({.max_model_len = 257}), HasSubstr("257; the model was made for 1 to 256"));
  EXPECT_THAT(Refusal({.max_model_len = -1}), HasSubstr("-1; the model"));
}

TEST_F(LoadPlanTest, AGpuHasItsOwnTypesAndPacksATiedHeadOnceMore) {
  ASSERT_TRUE(Plan({}).ok());
  const auto rows = PlanLoad(*checkpoint_, {}, kernels::PackLayout::kBf16Rows);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->activation_dtype, "bf16");
  EXPECT_EQ(rows->weights.mapped_bytes, 0);
  EXPECT_EQ(rows->weights.embedding.plan.bytes, 2 * 576 * 64);
  EXPECT_EQ(rows->weights.lm_head.plan.bytes, 2 * 576 * 64);
  const auto refused =
      PlanLoad(*checkpoint_, {.kv_cache_dtype = "f32"}, kernels::PackLayout::kBf16Rows);
  EXPECT_EQ(refused.status().message(), "the cuda backend has no KV type f32; it has bf16");
}

TEST_F(LoadPlanTest, WhatTheKernelsOfTheBackendLackIsRefusedInTheirWords) {
  EXPECT_TRUE(Plan({}, {.head_size = 48}).ok());
  const auto on_gpu = PlanLoad(*checkpoint_, {}, kernels::PackLayout::kBf16Rows);
  EXPECT_EQ(on_gpu.status().message(),
            "the cuda backend has no head size 48; it has 32, 64, 96, 128, 256");
  EXPECT_THAT(Refusal({}, {.head_size = 40}), HasSubstr("the cpu backend has no head size 40; it"));
  EXPECT_THAT(Refusal({.block_size = 12}), HasSubstr("the cpu backend has no block size 12; it"));
}

TEST_F(LoadPlanTest, WeightsAreCountedAsTheBackendPacksThem) {
  const auto plan = Plan({});
  EXPECT_EQ(plan->memory.weight_bytes, plan->weights.packed_bytes + plan->weights.mapped_bytes);
  EXPECT_GT(plan->weights.mapped_bytes, 0);  // the embedding, where it lies
  const auto rows = PlanLoad(*checkpoint_, {}, kernels::PackLayout::kRows);
  EXPECT_NE(rows->memory.weight_bytes, plan->memory.weight_bytes);
}

}  // namespace
}  // namespace pagoda::model
