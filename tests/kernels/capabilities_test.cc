#include "kernels/capabilities.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference_ops.h"

namespace pagoda::kernels {
namespace {

using testing::HasSubstr;

base::KvGeometry Geometry(std::int32_t head_size, std::int32_t block_size) {
  base::KvGeometry geometry;
  geometry.block_size = block_size;
  geometry.groups.push_back({.num_layers = 2,
                             .window_tokens = std::nullopt,
                             .num_kv_heads = 1,
                             .head_size = head_size,
                             .type = base::KvType::kBf16});
  return geometry;
}

TEST(Capabilities, WhatIsMissingIsNamedBesideWhatThereIs) {
  const auto ops = MakeReferenceOps();
  Capabilities has = ops->capabilities();
  EXPECT_TRUE(CheckGeometry(has, Geometry(64, 16)).ok());
  EXPECT_THAT(CheckGeometry(has, Geometry(40, 16)).ToString(), HasSubstr("no head size 40"));
  EXPECT_THAT(CheckGeometry(has, Geometry(64, 3)).ToString(), HasSubstr("no block size 3"));
  base::KvGeometry window = Geometry(64, 16);
  window.groups[0].window_tokens = 4096;
  EXPECT_THAT(CheckGeometry(has, window).ToString(), HasSubstr("sliding window of 4096"));
  has.kv_types = {base::KvType::kF32};
  EXPECT_THAT(CheckGeometry(has, Geometry(64, 16)).ToString(),
              HasSubstr("no KV type bf16; it has f32"));
}

TEST(Capabilities, AWeightIsCheckedWithTheActivationItWillReallyHave) {
  Capabilities has;
  has.backend = "some";
  has.weights = {{ElementType::kBf16, ActivationType::kF32},
                 {ElementType::kQ4_1, ActivationType::kInt8}};
  EXPECT_TRUE(CheckWeight(has, "a", ElementType::kBf16, ActivationType::kInt8).ok());
  EXPECT_TRUE(CheckWeight(has, "a", ElementType::kQ4_1, ActivationType::kInt8).ok());
  const absl::Status refused =
      CheckWeight(has, "blk.0.ffn_up.weight", ElementType::kQ4_1, ActivationType::kF32);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.ToString(), HasSubstr("blk.0.ffn_up.weight"));
  EXPECT_THAT(refused.ToString(), HasSubstr("Q4_1 with f32 activations"));
}

}  // namespace
}  // namespace pagoda::kernels
