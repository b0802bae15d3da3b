#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "base/check.h"

// Views of memory that someone else owns: two dimensions, rows apart by a stride, elements of a row
// adjacent. Plain values, any thread. The letters of all shapes in kernels/: T tokens (rows of a
// step), S sequences, H query heads, G KV heads, D head size, and y[M, N] = x[M, K] w[N, K]^T.
namespace pagoda::kernels {

// How numbers stand in memory. The quantized forms are GGUF's: blocks of 32 or 256 along a row,
// each with its own f16 scale.
enum class ElementType : std::uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

struct ElementTypeInfo {
  const char* name;
  std::int64_t block_columns;  // 1, or the elements that share a block
  std::int64_t block_bytes;    // of one element, or of one block
};

// In the order of the enum. kernels/quant_block.cc takes the blocks apart.
inline constexpr ElementTypeInfo kElementTypes[] = {
    {"F32", 1, 4},       //
    {"F16", 1, 2},       //
    {"BF16", 1, 2},      //
    {"Q4_0", 32, 18},    // f16 d, nibbles; d * (q - 8)
    {"Q4_1", 32, 20},    // f16 d, f16 m, nibbles; d * q + m
    {"Q5_0", 32, 22},    // f16 d, fifth bits, nibbles; d * (q - 16)
    {"Q5_1", 32, 24},    // f16 d, f16 m, fifth bits, nibbles; d * q + m
    {"Q8_0", 32, 34},    // f16 d, signed bytes; d * q
    {"Q4_K", 256, 144},  // f16 d, f16 m, 6-bit s and t per 32, nibbles; (d * s) * q - m * t
    {"Q5_K", 256, 176},  // f16 d, f16 m, s and t, fifth bits, nibbles; the same
    {"Q6_K", 256, 210},  // nibbles, upper two bits, signed s per 16, f16 d; (d * s) * (q - 32)
};
inline constexpr ElementType kAllElementTypes[] = {
    ElementType::kF32,  ElementType::kF16,  ElementType::kBf16, ElementType::kQ4_0,
    ElementType::kQ4_1, ElementType::kQ5_0, ElementType::kQ5_1, ElementType::kQ8_0,
    ElementType::kQ4_K, ElementType::kQ5_K, ElementType::kQ6_K};
static_assert(std::size(kElementTypes) == std::size(kAllElementTypes));

// Elements of a row that share one scale, in activations and, at least, in weights.
inline constexpr std::int64_t kQuantBlock = 32;

constexpr const ElementTypeInfo& InfoOf(ElementType type) {
  return kElementTypes[static_cast<std::size_t>(type)];
}
constexpr const char* Name(ElementType type) { return InfoOf(type).name; }
constexpr bool IsQuantized(ElementType type) { return type >= ElementType::kQ4_0; }
constexpr std::int64_t BlockColumns(ElementType type) { return InfoOf(type).block_columns; }
constexpr std::int64_t BlockBytes(ElementType type) { return InfoOf(type).block_bytes; }

// Bytes of a row of `columns` elements. Requires: whole blocks.
constexpr std::int64_t RowBytes(ElementType type, std::int64_t columns) {
  return columns / BlockColumns(type) * BlockBytes(type);
}

// fp32 activations, [rows, columns]. `stride` is in elements, >= columns; bytes between rows belong
// to nobody.
template <typename T>
struct BasicMatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;

  T* Row(std::int64_t r) const { return data + r * stride; }
  // Columns [first, first + count).
  BasicMatrixView Columns(std::int64_t first, std::int64_t count) const {
    PAGODA_CHECK(first >= 0 && count >= 0 && first + count <= columns);
    return {data + first, rows, count, stride};
  }
  BasicMatrixView Rows(std::int64_t first, std::int64_t count) const {
    PAGODA_CHECK(first >= 0 && count >= 0 && first + count <= rows);
    return {data + first * stride, count, columns, stride};
  }
  operator BasicMatrixView<const T>() const  // NOLINT(google-explicit-constructor): as span does
    requires(!std::is_const_v<T>)
  {
    return {data, rows, columns, stride};
  }
};
using MatrixView = BasicMatrixView<float>;
using ConstMatrixView = BasicMatrixView<const float>;

// A weight as a file holds it: [rows, columns], rows adjacent unless row_bytes says otherwise.
struct TensorView {
  const std::byte* data = nullptr;
  ElementType type = ElementType::kF32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_bytes = 0;

  static TensorView Contiguous(const std::byte* data, ElementType type, std::int64_t rows,
                               std::int64_t columns) {
    return {data, type, rows, columns, RowBytes(type, columns)};
  }
  const std::byte* Row(std::int64_t r) const { return data + r * row_bytes; }
};

}  // namespace pagoda::kernels
