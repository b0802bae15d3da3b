#include "kernels/kv_support.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::kernels {
namespace {

TEST(KvSupport, EachLayoutSpeaksForItsBackendAndNamesWhatThereIs) {
  base::KvGeometry geometry;
  geometry.block_size = 16;
  geometry.groups.push_back({.num_layers = 2,
                             .window_tokens = std::nullopt,
                             .num_kv_heads = 1,
                             .head_size = 48,
                             .type = base::KvType::kBf16});
  EXPECT_TRUE(CheckGeometry(KvSupportOf(PackLayout::kRows), geometry).ok());
  EXPECT_TRUE(CheckGeometry(KvSupportOf(PackLayout::kColumnPanels), geometry).ok());
  EXPECT_EQ(CheckGeometry(KvSupportOf(PackLayout::kBf16Rows), geometry).message(),
            "the cuda backend has no head size 48; it has 32, 64, 96, 128, 256");
  geometry.groups[0].head_size = 32;
  EXPECT_TRUE(CheckGeometry(KvSupportOf(PackLayout::kBf16Rows), geometry).ok());
  geometry.groups[0].type = base::KvType::kF32;
  EXPECT_EQ(CheckGeometry(KvSupportOf(PackLayout::kBf16Rows), geometry).message(),
            "the cuda backend has no KV type f32; it has bf16");
  geometry.block_size = 5;
  EXPECT_THAT(CheckGeometry(KvSupportOf(PackLayout::kColumnPanels), geometry).ToString(),
              testing::HasSubstr("the cpu backend has no block size 5; it has 1, 2, 4"));
}

}  // namespace
}  // namespace pagoda::kernels
