#include "kernels/reference/row_ops.h"

#include <array>
#include <cmath>

#include "base/exact_math.h"
#include "kernels/dequantize.h"

namespace pagoda::kernels::reference {
namespace {

constexpr std::size_t kNormLanes = 32;

// 1 / root of the mean square.
float InverseRootMeanSquare(std::span<const float> row, float epsilon) {
  std::array<float, kNormLanes> lanes = {};
  for (std::size_t k = 0; k < row.size(); ++k) {
    float& lane = lanes[k % kNormLanes];
    lane = base::Fma(row[k], row[k], lane);
  }
  const float mean = TreeSum(lanes) / static_cast<float>(row.size());
  return 1.0f / std::sqrt(mean + epsilon);
}

std::span<const float> RowSpan(const ConstMatrixView& view, std::int64_t row) {
  return {view.Row(row), static_cast<std::size_t>(view.columns)};
}

}  // namespace

float TreeSum(std::span<float> lanes) {
  for (std::size_t width = lanes.size() / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

void Embed(const EmbedParams& params) {
  const PackedPart& part = params.table->plan.parts[0];
  for (std::int64_t t = 0; t < params.out.rows; ++t) {
    const std::int64_t token = params.tokens[static_cast<std::size_t>(t)];
    DequantizeRow(part.format, params.table->Part(0) + token * part.unit_bytes,
                  {params.out.Row(t), static_cast<std::size_t>(params.out.columns)});
  }
}

void RmsNorm(const RmsNormParams& params) {
  for (std::int64_t t = 0; t < params.in.rows; ++t) {
    const float* in = params.in.Row(t);
    float* out = params.out.Row(t);
    const float inverse = InverseRootMeanSquare(RowSpan(params.in, t), params.epsilon);
    for (std::int64_t k = 0; k < params.in.columns; ++k) {
      out[k] = (in[k] * inverse) * params.weight[static_cast<std::size_t>(k)];
    }
  }
}

void Add(const AddParams& params) {
  for (std::int64_t t = 0; t < params.inout.rows; ++t) {
    const float* const addend = params.addend.Row(params.addend.rows == 1 ? 0 : t);
    for (std::int64_t k = 0; k < params.inout.columns; ++k) params.inout.Row(t)[k] += addend[k];
  }
}

void SiluMul(const SiluMulParams& params) {
  const std::int64_t width = params.out.columns;
  for (std::int64_t t = 0; t < params.out.rows; ++t) {
    const float* gate = params.gate_up.Row(t);
    const float* up = gate + width;
    for (std::int64_t k = 0; k < width; ++k) params.out.Row(t)[k] = base::Silu(gate[k]) * up[k];
  }
}

}  // namespace pagoda::kernels::reference
