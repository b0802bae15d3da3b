#include "kernels/reference/rope.h"

#include "base/exact_math.h"

namespace pagoda::kernels::reference {
namespace {

// One head of one token.
void RotateHead(const RopeParams& params, std::int64_t position, float* head) {
  const float* cos = params.cos.Row(position);
  const float* sin = params.sin.Row(position);
  const std::int32_t half = params.rotary_size / 2;
  for (std::int32_t i = 0; i < half; ++i) {
    const bool interleaved = params.pairs == RopePairs::kInterleaved;
    float& first = head[interleaved ? 2 * i : i];
    float& second = head[interleaved ? 2 * i + 1 : i + half];
    const float a = first;
    const float b = second;
    first = base::Fma(a, cos[i], -(b * sin[i]));
    second = base::Fma(b, cos[i], a * sin[i]);
  }
}

void RotateRows(const RopeParams& params, const MatrixView& rows) {
  for (std::int64_t t = 0; t < rows.rows; ++t) {
    const std::int64_t position = params.positions[static_cast<std::size_t>(t)];
    for (std::int64_t d = 0; d < rows.columns; d += params.head_size) {
      RotateHead(params, position, rows.Row(t) + d);
    }
  }
}

}  // namespace

void Rope(const RopeParams& params) {
  RotateRows(params, params.query);
  RotateRows(params, params.key);
}

}  // namespace pagoda::kernels::reference
