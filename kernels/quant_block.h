#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/tensor_view.h"

// The blocks of the quantized types taken apart, 32 elements at a time: the one place that knows
// their bytes. Plain data, any thread.
namespace pagoda::kernels {

// 32 elements of a row, one after another. Element i is
//   (d * scales[i / 16]) * (q[i] - QuantZero) + minimum,
// where d is a widened f16 and every product is exact in fp32.
struct QuantBlock {
  std::array<std::int8_t, kQuantBlock> q = {};  // as stored: unsigned, but for Q8_0
  std::uint16_t d = 0;                          // f16 of the block that the file has
  std::array<std::int8_t, 2> scales = {1, 1};   // of the first and the last 16; 1 without such
  std::uint16_t m = 0;                          // f16; types with a minimum
  std::int8_t minimum_scale = 1;                // K types: the minimum is -(m * minimum_scale)

  float Scale(std::size_t half) const;  // d * scales[half]
};

// The stored number that stands for zero.
constexpr std::int32_t QuantZero(ElementType type) {
  switch (type) {
    case ElementType::kQ4_0:
      return 8;
    case ElementType::kQ5_0:
      return 16;
    case ElementType::kQ6_K:
      return 32;
    default:
      return 0;
  }
}

constexpr bool HasMinimum(ElementType type) {
  return type == ElementType::kQ4_1 || type == ElementType::kQ5_1 || type == ElementType::kQ4_K ||
         type == ElementType::kQ5_K;
}

// What is added to every element of a block: +m, or -(m * minimum_scale) in the K types.
float Minimum(ElementType type, const QuantBlock& block);

// Elements 32 * index ... 32 * index + 31 of `row`. Requires: type is quantized and the row holds
// them.
QuantBlock ReadQuantBlock(ElementType type, const std::byte* row, std::int64_t index);

}  // namespace pagoda::kernels
