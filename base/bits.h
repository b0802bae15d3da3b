#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace pagoda::base {

// ceil(a / b) for a >= 0, b > 0.
template <std::integral T>
constexpr T DivUp(T a, T b) {
  return static_cast<T>(a / b + (a % b != 0 ? 1 : 0));
}

// The smallest multiple of `multiple` that is >= a.
template <std::integral T>
constexpr T RoundUp(T a, T multiple) {
  return static_cast<T>(DivUp(a, multiple) * multiple);
}

// bfloat16 as its 16 bits. A NaN stays a NaN; rounding is to nearest, ties to even.
constexpr std::uint16_t Bf16FromFloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float FloatFromBf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// IEEE half precision as its 16 bits; exact for every input, subnormals included.
constexpr float FloatFromF16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t widened = exponent == 31 ? 0xffu : exponent + 112u;
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

}  // namespace pagoda::base
