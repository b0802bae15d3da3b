#include "kernels/reference/matmul.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/bits.h"
#include "base/check.h"
#include "base/exact_math.h"
#include "kernels/dequantize.h"
#include "kernels/reference/quantize_row.h"

namespace pagoda::kernels::reference {
namespace {

void Put(const MatmulParams& params, std::int64_t m, std::int64_t n, float product) {
  float& out = params.out.Row(m)[n];
  out = params.output == MatmulOutput::kAdd ? out + product : product;
}

float LoadF16(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return base::FloatFromF16(bits);
}

// The integers of one block of 32 weights, and how they scale.
struct WeightBlock {
  std::array<std::int32_t, kQuantBlock> values = {};
  float d = 0.0f;
  float m = 0.0f;  // Q4_1 only
};

WeightBlock ReadBlock(ElementType format, const std::byte* block) {
  WeightBlock read;
  read.d = LoadF16(block);
  if (format == ElementType::kQ8_0) {
    for (std::size_t i = 0; i < kQuantBlock; ++i) {
      read.values[i] = static_cast<std::int8_t>(std::to_integer<int>(block[2 + i]));
    }
    return read;
  }
  const bool has_min = format == ElementType::kQ4_1;
  if (has_min) read.m = LoadF16(block + 2);
  const std::byte* nibbles = block + (has_min ? 4 : 2);
  const int zero = has_min ? 0 : 8;
  for (std::size_t i = 0; i < kQuantBlock / 2; ++i) {
    const int pair = std::to_integer<int>(nibbles[i]);
    read.values[i] = (pair & 15) - zero;
    read.values[i + kQuantBlock / 2] = (pair >> 4) - zero;
  }
  return read;
}

float DotF32(std::span<const float> x, std::span<const float> w) {
  float sum = 0.0f;
  for (std::size_t k = 0; k < x.size(); ++k) sum = base::Fma(x[k], w[k], sum);
  return sum;
}

float DotInt8(const QuantizedRow& x, std::span<const WeightBlock> w, bool has_min) {
  float sum = 0.0f;
  for (std::size_t b = 0; b < w.size(); ++b) {
    std::int32_t dot = 0;
    for (std::size_t i = 0; i < kQuantBlock; ++i) {
      dot += x.values[b * kQuantBlock + i] * w[b].values[i];
    }
    sum = base::Fma(w[b].d * x.scales[b], static_cast<float>(dot), sum);
    if (has_min) sum = base::Fma(w[b].m, x.scales[b] * static_cast<float>(x.sums[b]), sum);
  }
  return sum;
}

std::span<const float> RowOfX(const MatmulParams& params, std::int64_t m) {
  return {params.x.Row(m), static_cast<std::size_t>(params.x.columns)};
}

void MatmulF32(const MatmulParams& params, const PackedPart& part, const std::byte* rows) {
  std::vector<float> w(static_cast<std::size_t>(params.x.columns));
  for (std::int64_t n = 0; n < part.num_outputs; ++n) {
    DequantizeRow(part.format, rows + n * part.unit_bytes, w);
    for (std::int64_t m = 0; m < params.x.rows; ++m) {
      Put(params, m, part.first_output + n, DotF32(RowOfX(params, m), w));
    }
  }
}

void MatmulInt8(const MatmulParams& params, const PackedPart& part, const std::byte* rows) {
  std::vector<QuantizedRow> x;
  for (std::int64_t m = 0; m < params.x.rows; ++m) x.push_back(QuantizeRow(RowOfX(params, m)));
  std::vector<WeightBlock> w(static_cast<std::size_t>(params.x.columns / kQuantBlock));
  const bool has_min = part.format == ElementType::kQ4_1;
  for (std::int64_t n = 0; n < part.num_outputs; ++n) {
    for (std::size_t b = 0; b < w.size(); ++b) {
      w[b] = ReadBlock(part.format, rows + n * part.unit_bytes +
                                        static_cast<std::int64_t>(b) * BytesPerUnit(part.format));
    }
    for (std::int64_t m = 0; m < params.x.rows; ++m) {
      Put(params, m, part.first_output + n, DotInt8(x[static_cast<std::size_t>(m)], w, has_min));
    }
  }
}

}  // namespace

void Matmul(const MatmulParams& params) {
  const PackPlan& plan = params.weight->plan;
  PAGODA_CHECK(plan.layout == PackLayout::kRows);
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const PackedPart& part = plan.parts[i];
    if (part.activation == ActivationType::kInt8) {
      MatmulInt8(params, part, params.weight->Part(i));
    } else {
      MatmulF32(params, part, params.weight->Part(i));
    }
  }
}

}  // namespace pagoda::kernels::reference
