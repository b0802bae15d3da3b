#include "base/exact_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::base {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Distance in units of the last place of an fp32 number as large as `wanted`.
long double UlpError(float got, long double wanted) {
  int exponent = 0;
  std::frexp(wanted, &exponent);
  return std::fabs(static_cast<long double>(got) - wanted) / std::ldexp(1.0L, exponent - 24);
}

// Every `step`-th fp32 number from `first` to `last`, both given as bits of one sign.
template <typename Exact, typename Wanted>
long double LargestUlpError(float first, float last, Exact exact, Wanted wanted) {
  constexpr std::uint32_t kStep = 1009;  // odd, so that every low bit pattern is met
  long double largest = 0;
  const auto end = std::bit_cast<std::uint32_t>(last);
  for (auto bits = std::bit_cast<std::uint32_t>(first); bits <= end; bits += kStep) {
    const auto x = std::bit_cast<float>(bits);
    largest = std::max(largest, UlpError(exact(x), wanted(static_cast<long double>(x))));
  }
  return largest;
}

// The bounds hold from both sides: a change that makes a function better or worse must be noticed,
// since it changes bits.
TEST(ExactMath, ExpStaysWithinItsStatedError) {
  const auto wanted = [](long double x) { return std::exp(x); };
  const long double negative = LargestUlpError(-0x1p-40f, -0x1.5d589ep+6f, Exp, wanted);
  const long double positive = LargestUlpError(0x1p-40f, 0x1.62e42ep+6f, Exp, wanted);
  EXPECT_LE(negative, 0.9L);
  EXPECT_LE(positive, 0.9L);
  EXPECT_GE(negative, 0.7L);
}

TEST(ExactMath, ExpKeepsItsExactFacts) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(std::nextafter(-0x1.5d589ep+6f, -kInfinity)), 0.0f);
  EXPECT_GE(Exp(-0x1.5d589ep+6f), std::numeric_limits<float>::min());
  EXPECT_LT(Exp(0x1.62e42ep+6f), kInfinity);
  EXPECT_EQ(Exp(std::nextafter(0x1.62e42ep+6f, kInfinity)), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ExactMath, LogStaysWithinItsStatedErrorOnEveryPositiveNumber) {
  const auto wanted = [](long double x) { return std::log(x); };
  const float below = std::nextafter(1.0f, 0.0f);
  const float above = std::nextafter(1.0f, 2.0f);
  const long double small =
      LargestUlpError(std::numeric_limits<float>::denorm_min(), below, Log, wanted);
  const long double large = LargestUlpError(above, std::numeric_limits<float>::max(), Log, wanted);
  EXPECT_LE(small, 0.9L);
  EXPECT_LE(large, 0.9L);
  EXPECT_GE(small, 0.6L);
}

TEST(ExactMath, LogKeepsItsExactFacts) {
  EXPECT_EQ(Log(1.0f), 0.0f);
  EXPECT_EQ(Log(0.0f), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  EXPECT_TRUE(std::isnan(Log(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ExactMath, NegLog1mStaysWithinItsStatedErrorDownToTinyArguments) {
  const auto wanted = [](long double v) { return -std::log1p(-v); };
  const long double largest =
      LargestUlpError(std::numeric_limits<float>::min(), 1.0f - 0x1p-24f, NegLog1m, wanted);
  EXPECT_LE(largest, 0.9L);
  EXPECT_GE(largest, 0.6L);
  EXPECT_EQ(NegLog1m(0.0f), 0.0f);
}

TEST(ExactMath, SiluIsFiniteForEveryFiniteArgumentAndCloseToTheRealOne) {
  for (const float x : {-3e38f, -100.0f, -88.5f, -5.0f, -1e-30f, 0.0f, 0.5f, 20.0f, 3e38f}) {
    const float y = Silu(x);
    EXPECT_TRUE(std::isfinite(y)) << x;
    const long double wanted = x / (1.0L + std::exp(-static_cast<long double>(x)));
    EXPECT_LE(std::fabs(y - wanted), 4e-7L * std::fabs(wanted) + 1e-35L) << x;
  }
}

// The bits themselves, so that no compiler or machine can move them unseen.
TEST(ExactMath, TheBitsAreTheSameEverywhere) {
  std::uint32_t digest = 2166136261u;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const auto unit = static_cast<float>(i) * 0x1p-17f;  // [0, 0.77)
    for (const float y : {Exp(unit * -90.0f), Log(unit), NegLog1m(unit), Silu(unit - 0.4f)}) {
      digest = (digest ^ std::bit_cast<std::uint32_t>(y)) * 16777619u;
    }
  }
  EXPECT_EQ(digest, 0xf36f9e84u);
}

}  // namespace
}  // namespace pagoda::base
