#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"

// Views of memory that someone else owns: two dimensions, rows apart by a stride, elements of a row
// adjacent. Plain values, any thread. The letters of all shapes in kernels/: T tokens (rows of a
// step), S sequences, H query heads, G KV heads, D head size, and y[M, N] = x[M, K] w[N, K]^T.
namespace pagoda::kernels {

// How numbers stand in memory. The quantized forms are GGUF's: blocks of 32 along a row, each with
// its own f16 scale.
enum class ElementType : std::uint8_t { kF32, kF16, kBf16, kQ4_0, kQ4_1, kQ8_0 };

inline constexpr std::int64_t kQuantBlock = 32;

constexpr bool IsQuantized(ElementType type) { return type >= ElementType::kQ4_0; }

constexpr const char* Name(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "F32";
    case ElementType::kF16:
      return "F16";
    case ElementType::kBf16:
      return "BF16";
    case ElementType::kQ4_0:
      return "Q4_0";
    case ElementType::kQ4_1:
      return "Q4_1";
    case ElementType::kQ8_0:
      return "Q8_0";
  }
  return "?";
}

// Bytes of one element, or of one block of 32 for a quantized type.
constexpr std::int64_t BytesPerUnit(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return 4;
    case ElementType::kF16:
    case ElementType::kBf16:
      return 2;
    case ElementType::kQ4_0:
      return 18;  // f16 d, 16 bytes: element i in the low nibble of byte i, i + 16 in the high one;
                  // d * (q - 8)
    case ElementType::kQ4_1:
      return 20;  // f16 d, f16 m, nibbles as above; d * q + m
    case ElementType::kQ8_0:
      return 34;  // f16 d, 32 signed bytes; d * q
  }
  return 0;
}

// Bytes of a row of `columns` elements. Requires: columns is a multiple of 32 for a quantized type.
constexpr std::int64_t RowBytes(ElementType type, std::int64_t columns) {
  return IsQuantized(type) ? columns / kQuantBlock * BytesPerUnit(type)
                           : columns * BytesPerUnit(type);
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
