#include <cmath>
#include <cstdint>
#include <random>

#include "gtest/gtest.h"
#include "kernels/reference/sample.h"

namespace pagoda::kernels::reference {
namespace {

TEST(FixedPoint, AWeightIsFlooredAtFortyBits) {
  EXPECT_EQ(FixedPointWeight(1.0f), std::uint64_t{1} << 40);
  EXPECT_EQ(FixedPointWeight(0x1p-40f), 1u);
  EXPECT_EQ(FixedPointWeight(std::nextafter(0x1p-40f, 0.0f)), 0u);
  EXPECT_EQ(FixedPointWeight(0x1.8p-40f), 1u);
  EXPECT_EQ(FixedPointWeight(0.0f), 0u);
}

TEST(FixedPoint, TheThresholdIsTheLeastIntegerNotBelowTheExactProduct) {
  std::mt19937_64 random(71);
  for (int i = 0; i < 10'000; ++i) {
    const auto top_p = static_cast<float>(1 + random() % 1000) / 1000.0f;
    const std::uint64_t total = random() >> (random() % 40 + 6);
    const std::uint64_t found = TopPThreshold(top_p, total);
    // top_p * 2^60 is an integer for these values.
    const auto scaled = static_cast<__int128>(std::ldexp(double{top_p}, 60));
    const __int128 product = scaled * static_cast<__int128>(total);
    const __int128 threshold = static_cast<__int128>(found) << 60;
    ASSERT_GE(threshold, product);
    ASSERT_LT(threshold - (__int128{1} << 60), product);
  }
}

TEST(FixedPoint, TinyAndWholeTopPAreExact) {
  EXPECT_EQ(TopPThreshold(1.0f, 12345), 12345u);
  EXPECT_EQ(TopPThreshold(0x1p-126f, std::uint64_t{1} << 60), 1u);
  EXPECT_EQ(TopPThreshold(1e-45f, std::uint64_t{1} << 60), 1u);
  EXPECT_EQ(TopPThreshold(0.5f, 0), 0u);
}

}  // namespace
}  // namespace pagoda::kernels::reference
