#include "formats/gguf_types.h"

#include <gtest/gtest.h>

#include "formats/gguf.h"

namespace pagoda::formats {
namespace {

TEST(GgufTypes, TheTypesWeComputeWithHaveTheLayoutTheFormatGivesThem) {
  const auto expect = [](GgufType type, std::string_view name, std::uint64_t values,
                         std::uint64_t bytes) {
    const auto info = FindGgufType(static_cast<std::uint32_t>(type));
    ASSERT_TRUE(info.has_value()) << name;
    EXPECT_EQ(info->name, name);
    EXPECT_EQ(info->block_values, values) << name;
    EXPECT_EQ(info->block_bytes, bytes) << name;
  };
  expect(GgufType::kF32, "F32", 1, 4);
  expect(GgufType::kF16, "F16", 1, 2);
  expect(GgufType::kBf16, "BF16", 1, 2);
  expect(GgufType::kQ4_0, "Q4_0", 32, 2 + 16);
  expect(GgufType::kQ4_1, "Q4_1", 32, 2 + 2 + 16);
  expect(GgufType::kQ5_0, "Q5_0", 32, 2 + 4 + 16);
  expect(GgufType::kQ5_1, "Q5_1", 32, 2 + 2 + 4 + 16);
  expect(GgufType::kQ8_0, "Q8_0", 32, 2 + 32);
  expect(GgufType::kQ4_K, "Q4_K", 256, 2 + 2 + 12 + 128);
  expect(GgufType::kQ5_K, "Q5_K", 256, 2 + 2 + 12 + 32 + 128);
  expect(GgufType::kQ6_K, "Q6_K", 256, 128 + 64 + 16 + 2);
}

TEST(GgufTypes, RetiredAndUnknownNumbersHaveNoLayout) {
  EXPECT_FALSE(FindGgufType(4).has_value());  // Q4_2, gone from the format
  EXPECT_FALSE(FindGgufType(0xffffffffu).has_value());
}

}  // namespace
}  // namespace pagoda::formats
