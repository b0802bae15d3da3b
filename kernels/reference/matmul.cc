#include "kernels/reference/matmul.h"

#include <array>
#include <vector>

#include "base/bits.h"
#include "base/check.h"
#include "base/exact_math.h"
#include "kernels/dequantize.h"
#include "kernels/quant_block.h"
#include "kernels/reference/quantize_row.h"

namespace pagoda::kernels::reference {
namespace {

void Put(const MatmulParams& params, std::int64_t m, std::int64_t n, float product) {
  float& out = params.out.Row(m)[n];
  out = params.output == MatmulOutput::kAdd ? out + product : product;
}

// The integers of one block of 32 weights, and how they scale.
struct WeightBlock {
  std::array<std::int32_t, kQuantBlock> values = {};
  float d = 0.0f;
  float m = 0.0f;
};

WeightBlock ReadBlock(ElementType format, const std::byte* row, std::int64_t index) {
  const QuantBlock block = ReadQuantBlock(format, row, index);
  // Two scales to a block stay with the integers, so that one fma carries the whole block.
  const bool scaled_halves = format == ElementType::kQ6_K;
  WeightBlock read;
  read.d = scaled_halves ? base::FloatFromF16(block.d) : block.Scale(0);
  if (HasMinimum(format)) read.m = Minimum(format, block);
  for (std::size_t i = 0; i < kQuantBlock; ++i) {
    const std::int32_t q = block.q[i] - QuantZero(format);
    read.values[i] = scaled_halves ? block.scales[i / 16] * q : q;
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
  const bool has_min = HasMinimum(part.format);
  for (std::int64_t n = 0; n < part.num_outputs; ++n) {
    for (std::size_t b = 0; b < w.size(); ++b) {
      w[b] = ReadBlock(part.format, rows + n * part.unit_bytes, static_cast<std::int64_t>(b));
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
