#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Elementary functions that give the same bits on every machine, compiler and vector width: only
// fp32 add, multiply and fma, each rounded to nearest, in a fixed order; no library call, no
// branch, so a loop over them vectorises. This file includes only the standard library:
// kernels/cuda compiles it too. Compile with floating-point contraction off. The stated errors are
// against long double; tests/base/exact_math_test.cc holds them.
#if !defined(PAGODA_HOST_DEVICE)
#if defined(__CUDACC__)
#define PAGODA_HOST_DEVICE __host__ __device__
#else
#define PAGODA_HOST_DEVICE
#endif
#endif

namespace pagoda::base {

// a * b + c, rounded once. The one way to ask for it.
PAGODA_HOST_DEVICE inline float Fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}

// e^x, error <= 0.9 ulp wherever the result is normal. Exact facts that callers use: Exp(0) = 1,
// Exp(-infinity) = 0, and 0 for every x below -87.336544 (there are no subnormal results);
// +infinity above 88.72283; NaN for NaN.
//   x = n ln 2 + r, |r| <= 0.3469;  e^r = 1 + r + r^2 (c0 + c1 r + ...), largest error of the
//   polynomial 2^-28.2.
PAGODA_HOST_DEVICE inline float Exp(float x) {
  constexpr float kLowest = -0x1.5d589ep+6f;  // the least x with a normal result
  constexpr float kHighest = 0x1.62e42ep+6f;  // the largest x with a finite result
  constexpr float kRoundToInteger =
      0x1.8p+23f;  // adding it leaves the nearest integer in the low bits
  const float clamped = x < kLowest ? kLowest : (x > kHighest ? kHighest : x);
  const float shifted = Fma(clamped, 0x1.715476p+0f, kRoundToInteger);
  const float n = shifted - kRoundToInteger;
  float r = Fma(n, -0x1.63p-1f, clamped);  // ln 2 in two parts; the product with the first is exact
  r = Fma(n, 0x1.bd0106p-13f, r);
  float p = 0x1.6a23d0p-10f;
  p = Fma(p, r, 0x1.123a20p-7f);
  p = Fma(p, r, 0x1.5558f2p-5f);
  p = Fma(p, r, 0x1.555492p-3f);
  p = Fma(p, r, 0x1.fffffcp-2f);
  p = Fma(p, r, 1.0f);
  p = Fma(p, r, 1.0f);
  // p lies in [0.7, 1.42] and the result is normal, so multiplying by 2^n is adding n to the
  // exponent.
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  float y = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  y = x < kLowest ? 0.0f : y;
  y = x > kHighest ? std::numeric_limits<float>::infinity() : y;
  return x == x ? y : x;
}

// n ln 2 + log(1 + r) for -0.2929 <= r <= 0.4143. Largest error of the polynomial 2^-30.3.
PAGODA_HOST_DEVICE inline float LogOfParts(float n, float r) {
  float p = 0x1.1457c4p-4f;
  p = Fma(p, r, -0x1.de3c1cp-4f);
  p = Fma(p, r, 0x1.e6f062p-4f);
  p = Fma(p, r, -0x1.fc2206p-4f);
  p = Fma(p, r, 0x1.233768p-3f);
  p = Fma(p, r, -0x1.555c4ep-3f);
  p = Fma(p, r, 0x1.99a4b6p-3f);
  p = Fma(p, r, -0x1.000006p-2f);
  p = Fma(p, r, 0x1.555548p-2f);
  p = Fma(p, r, -0.5f);
  const float tail = Fma(n, -0x1.bd0106p-13f, (r * r) * p);
  return Fma(n, 0x1.63p-1f, tail + r);
}

// The n for which x * 2^-n lies in [sqrt(1/2), sqrt(2)), given the bits of a positive normal x.
PAGODA_HOST_DEVICE inline std::int32_t LogExponent(std::uint32_t bits) {
  return static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
}

// log x, error <= 0.9 ulp for every positive x, subnormals included. Log(1) = 0, Log(0) =
// -infinity, NaN below 0.
PAGODA_HOST_DEVICE inline float Log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool subnormal = x < std::numeric_limits<float>::min();
  const auto bits = std::bit_cast<std::uint32_t>(subnormal ? x * 0x1p+23f : x);
  const std::int32_t exponent = LogExponent(bits);
  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23));
  const float n = static_cast<float>(exponent) - (subnormal ? 23.0f : 0.0f);
  float y = LogOfParts(n, f - 1.0f);
  y = x == 0.0f ? -kInfinity : y;
  y = x == kInfinity ? kInfinity : y;
  return x >= 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
}

// -log(1 - v) for 0 <= v < 1, error <= 0.9 ulp, so also where v is tiny. NegLog1m(0) = 0 (as -0).
//   1 - v = u + rest exactly, with u the rounded difference.
PAGODA_HOST_DEVICE inline float NegLog1m(float v) {
  const float u = 1.0f - v;
  const float rest = (1.0f - u) - v;
  const auto bits = std::bit_cast<std::uint32_t>(u);
  const std::int32_t exponent = LogExponent(bits);
  const std::uint32_t shift = static_cast<std::uint32_t>(exponent) << 23;
  const float f = std::bit_cast<float>(bits - shift);
  const float scale = std::bit_cast<float>(0x3f800000u - shift);  // 2^-n
  return -LogOfParts(static_cast<float>(exponent), Fma(rest, scale, f - 1.0f));
}

// x / (1 + e^-x). Finite for finite x.
PAGODA_HOST_DEVICE inline float Silu(float x) { return x / (1.0f + Exp(-x)); }

}  // namespace pagoda::base
