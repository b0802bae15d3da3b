#pragma once

// Kernels that treat rows one by one. Same bits as kernels/reference, order for order.

#include "base/exact_math.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/mutation.cuh"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

// Calls use(column) for this thread's share of a row: CTA y has the columns from
// y * kElementThreads * kElementsPerThread on.
template <typename Use>
PAGODA_DEVICE void ForColumns(int columns, const Use& use) {
  const int first = CtaY() * kElementThreads * kElementsPerThread + ThreadIndex();
  for (int i = 0; i < kElementsPerThread; ++i) {
    const int column = first + i * kElementThreads;
    if (column < columns) use(column);
  }
}

PAGODA_KERNEL(kElementThreads, 4) Embed(PAGODA_ARGUMENT EmbedArguments arguments) {
  const std::int64_t row = CtaX();
  const std::int64_t token = arguments.tokens[Mutated(Mutation::kEmbedOneTokenForAll) ? 0 : row];
  const std::uint16_t* const source = arguments.table + token * arguments.columns;
  float* const out = arguments.out.data + row * arguments.out.stride;
  ForColumns(arguments.columns, [&](int k) { out[k] = base::FloatFromBf16(source[k]); });
}

// A warp a row: lane l sums the squares of k = l, l + 32, ...; then pairs of lanes, halving.
PAGODA_KERNEL(kElementThreads, 4) RmsNorm(PAGODA_ARGUMENT RmsNormArguments arguments) {
  const int lane = ThreadIndex() % kWarpLanes;
  const std::int64_t row = std::int64_t{CtaX()} * kNormRowsPerCta + ThreadIndex() / kWarpLanes;
  if (row >= arguments.rows) return;
  const float* const in = arguments.in.data + row * arguments.in.stride;
  float sum = 0.0f;
  for (int k = lane; k < arguments.columns; k += kWarpLanes) sum = base::Fma(in[k], in[k], sum);
  const int widest = Mutated(Mutation::kNormLosesHalfTheLanes) ? kWarpLanes / 4 : kWarpLanes / 2;
  for (int distance = widest; distance > 0; distance /= 2) {
    sum = sum + ShuffleXor(sum, distance);
  }
  const float mean = Divide(sum, static_cast<float>(arguments.columns));
  const float epsilon = Mutated(Mutation::kNormNoEpsilon) ? 0.0f : arguments.epsilon;
  const float inverse = Divide(1.0f, SquareRoot(mean + epsilon));
  float* const out = arguments.out.data + row * arguments.out.stride;
  std::uint16_t* const rounded = arguments.rounded.data + row * arguments.rounded.stride;
  for (int k = lane; k < arguments.columns; k += kWarpLanes) {
    const float normed = in[k] * inverse * arguments.weight[k];
    if (arguments.out.data != nullptr) out[k] = normed;
    if (arguments.rounded.data != nullptr) rounded[k] = base::Bf16FromFloat(normed);
  }
}

PAGODA_KERNEL(kElementThreads, 4) Add(PAGODA_ARGUMENT AddArguments arguments) {
  const std::int64_t row = CtaX();
  const std::int64_t step = Mutated(Mutation::kAddOneRowForAll) ? 0 : arguments.addend.stride;
  const float* const addend = arguments.addend.data + row * step;
  float* const inout = arguments.inout.data + row * arguments.inout.stride;
  ForColumns(arguments.columns, [&](int k) { inout[k] = inout[k] + addend[k]; });
}

PAGODA_KERNEL(kElementThreads, 4) RoundRows(PAGODA_ARGUMENT RoundRowsArguments arguments) {
  const std::int64_t row = CtaX();
  const float* const in = arguments.in.data + row * arguments.in.stride;
  std::uint16_t* const out = arguments.out.data + row * arguments.out.stride;
  ForColumns(arguments.columns, [&](int k) { out[k] = base::Bf16FromFloat(in[k]); });
}

PAGODA_KERNEL(kElementThreads, 4) SiluMul(PAGODA_ARGUMENT SiluMulArguments arguments) {
  const std::int64_t row = CtaX();
  const float* const both = arguments.gate_up.data + row * arguments.gate_up.stride;
  const bool swaps = Mutated(Mutation::kSiluMulSwapsItsFactors);
  const float* const gate = both + (swaps ? arguments.columns : 0);
  const float* const up = both + (swaps ? 0 : arguments.columns);
  float* const out = arguments.out.data + row * arguments.out.stride;
  ForColumns(arguments.columns,
             [&](int k) { out[k] = Divide(gate[k], 1.0f + base::Exp(-gate[k])) * up[k]; });
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
