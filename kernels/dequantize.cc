#include "kernels/dequantize.h"

#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "base/check.h"
#include "kernels/quant_block.h"

namespace pagoda::kernels {
namespace {

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T, float (*kWiden)(T)>
void WidenFloats(const std::byte* row, std::span<float> out) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = kWiden(Load<T>(row + k * sizeof(T)));
}

void WidenBlock(ElementType type, const QuantBlock& block, float* out) {
  const float minimum = Minimum(type, block);
  for (std::size_t i = 0; i < kQuantBlock; ++i) {
    out[i] = block.Scale(i / 16) * static_cast<float>(block.q[i] - QuantZero(type));
    if (HasMinimum(type)) out[i] += minimum;
  }
}

void WidenBlocks(ElementType type, const std::byte* row, std::span<float> out) {
  const auto columns = static_cast<std::int64_t>(out.size());
  PAGODA_CHECK(columns % BlockColumns(type) == 0);
  for (std::int64_t b = 0; b < columns / kQuantBlock; ++b) {
    WidenBlock(type, ReadQuantBlock(type, row, b), out.data() + b * kQuantBlock);
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
    default:
      return WidenBlocks(type, row, out);
  }
}

}  // namespace pagoda::kernels
