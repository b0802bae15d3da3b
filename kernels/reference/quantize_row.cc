#include "kernels/reference/quantize_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace pagoda::kernels::reference {
namespace {

constexpr std::size_t kBlock = 32;
constexpr std::uint32_t kInfinityBits = 0x7f800000u;
// Below it 127 / top would overflow; such a block counts as zero.
constexpr float kSmallestTop = 0x1p-100f;

// The bits of the largest magnitude. As integers, so that a NaN is the largest of all.
std::uint32_t TopBits(std::span<const float> block) {
  std::uint32_t top = 0;
  for (const float x : block) top = std::max(top, std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
  return top;
}

void QuantizeBlock(std::span<const float> block, QuantizedRow& out) {
  const std::uint32_t top_bits = TopBits(block);
  const auto top = std::bit_cast<float>(top_bits);
  float scale = 0.0f;
  float inverse = 0.0f;
  if (top_bits >= kInfinityBits) {
    scale = std::numeric_limits<float>::quiet_NaN();
  } else if (top >= kSmallestTop) {
    scale = top / 127.0f;
    inverse = 127.0f / top;
  }
  std::int32_t sum = 0;
  for (const float x : block) {
    const int q = inverse == 0.0f ? 0 : static_cast<int>(std::nearbyint(x * inverse));
    out.values.push_back(static_cast<std::int8_t>(q));
    sum += q;
  }
  out.scales.push_back(scale);
  out.sums.push_back(sum);
}

}  // namespace

QuantizedRow QuantizeRow(std::span<const float> row) {
  PAGODA_CHECK(row.size() % kBlock == 0);
  QuantizedRow out;
  for (std::size_t k = 0; k < row.size(); k += kBlock) QuantizeBlock(row.subspan(k, kBlock), out);
  return out;
}

}  // namespace pagoda::kernels::reference
