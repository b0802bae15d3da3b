#include "base/bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pagoda::base {
namespace {

TEST(Bits, DivUpRoundsTowardsInfinity) {
  EXPECT_EQ(DivUp(0, 4), 0);
  EXPECT_EQ(DivUp(1, 4), 1);
  EXPECT_EQ(DivUp(4, 4), 1);
  EXPECT_EQ(DivUp(5, 4), 2);
  EXPECT_EQ(RoundUp(5, 4), 8);
}

TEST(Bits, Bf16RoundsToNearestEven) {
  EXPECT_EQ(Bf16FromFloat(1.0f), 0x3f80);
  EXPECT_EQ(Bf16FromFloat(1.00390625f), 0x3f80);  // half way, down to even
  EXPECT_EQ(Bf16FromFloat(1.01171875f), 0x3f82);  // half way, up to even
  EXPECT_EQ(FloatFromBf16(0x3f82), 1.015625f);
}

TEST(Bits, Bf16KeepsNanAndInfinity) {
  EXPECT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(std::nanf("")))));
  EXPECT_EQ(FloatFromBf16(Bf16FromFloat(std::numeric_limits<float>::infinity())),
            std::numeric_limits<float>::infinity());
}

// The compiler's own half type is the oracle, over every bit pattern.
TEST(Bits, F16EqualsTheCompilersConversion) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float ours = FloatFromF16(static_cast<std::uint16_t>(half));
    const float oracle =
        static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(half)));
    if (std::isnan(oracle)) {
      ASSERT_TRUE(std::isnan(ours)) << half;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(ours), std::bit_cast<std::uint32_t>(oracle)) << half;
    }
  }
}

}  // namespace
}  // namespace pagoda::base
