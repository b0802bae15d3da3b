#include "kernels/dequantize.h"

#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::kernels {
namespace {

constexpr std::size_t kHalfBlock = kQuantBlock / 2;

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

float LoadF16(const std::byte* from) { return base::FloatFromF16(Load<std::uint16_t>(from)); }

template <typename T, float (*kWiden)(T)>
void WidenFloats(const std::byte* row, std::span<float> out) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = kWiden(Load<T>(row + k * sizeof(T)));
}

void WidenQ8Block(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (std::size_t i = 0; i < kQuantBlock; ++i) {
    out[i] = static_cast<float>(Load<std::int8_t>(block + 2 + i)) * d;
  }
}

// d * (nibble - zero) + m; nibble i and i + 16 share byte i.
void WidenNibbles(const std::byte* bytes, float d, int zero, float* out) {
  for (std::size_t i = 0; i < kHalfBlock; ++i) {
    const int pair = std::to_integer<int>(bytes[i]);
    out[i] = static_cast<float>((pair & 15) - zero) * d;
    out[i + kHalfBlock] = static_cast<float>((pair >> 4) - zero) * d;
  }
}

void WidenQ4_0Block(const std::byte* block, float* out) {
  WidenNibbles(block + 2, LoadF16(block), 8, out);
}

void WidenQ4_1Block(const std::byte* block, float* out) {
  WidenNibbles(block + 4, LoadF16(block), 0, out);
  const float m = LoadF16(block + 2);
  for (std::size_t i = 0; i < kQuantBlock; ++i) out[i] += m;
}

void WidenBlocks(ElementType type, const std::byte* row, std::span<float> out,
                 void (*widen)(const std::byte*, float*)) {
  PAGODA_CHECK(out.size() % kQuantBlock == 0);
  for (std::size_t k = 0; k < out.size(); k += kQuantBlock) {
    widen(row, out.data() + k);
    row += BytesPerUnit(type);
  }
}

float Identity(float value) { return value; }

}  // namespace

void DequantizeRow(ElementType type, const std::byte* row, std::span<float> out) {
  switch (type) {
    case ElementType::kF32:
      return WidenFloats<float, Identity>(row, out);
    case ElementType::kF16:
      return WidenFloats<std::uint16_t, base::FloatFromF16>(row, out);
    case ElementType::kBf16:
      return WidenFloats<std::uint16_t, base::FloatFromBf16>(row, out);
    case ElementType::kQ4_0:
      return WidenBlocks(type, row, out, WidenQ4_0Block);
    case ElementType::kQ4_1:
      return WidenBlocks(type, row, out, WidenQ4_1Block);
    case ElementType::kQ8_0:
      return WidenBlocks(type, row, out, WidenQ8Block);
  }
}

}  // namespace pagoda::kernels
