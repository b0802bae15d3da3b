#pragma once

// Each primitive alone, on given inputs: what a GPU must do as the emulator takes it to.

#include <array>

#include "base/counter_rng.h"
#include "base/exact_math.h"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {

inline constexpr int kNumbersThreads = 128;

// Products of a chain: c + a0 b0 + a1 b1 + ..., and the same with the operands exchanged.
struct SwapArguments {
  const std::uint16_t* a = nullptr;  // [cases][steps][16][16]
  const std::uint16_t* b = nullptr;  // [cases][steps][8][16], columns of the product as rows
  const float* c = nullptr;          // [cases][16][8]
  float* out = nullptr;              // [cases][16][8]
  float* swapped = nullptr;          // [cases][16][8]
  std::int32_t steps = 0;
};

struct MovesArguments {
  const std::uint16_t* in = nullptr;  // [32][8]
  std::uint32_t* plain = nullptr;     // [32][4]
  std::uint32_t* transposed = nullptr;
  float* shuffled = nullptr;        // [5][32]
  std::uint32_t* filled = nullptr;  // [32]: eight words copied, then eight zeros, and so on
};

struct NumbersArguments {
  const float* in = nullptr;        // [count]
  float* out = nullptr;             // [count][6]
  std::uint32_t* words = nullptr;   // [count][4]: Philox of (i, i + 1, i + 2, i + 3) under i
  std::uint32_t* packed = nullptr;  // [count]
  std::int32_t count = 0;
};
inline constexpr int kNumFunctions = 6;

inline namespace PAGODA_CUDA_NAMESPACE {

// The functions that must have the same bits everywhere; host code calls it too.
struct Numbers {
  float values[kNumFunctions];
};
PAGODA_HOST_DEVICE inline Numbers ExactNumbers(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float fraction = magnitude - static_cast<float>(static_cast<int>(magnitude));
  return {{base::Exp(x), base::Log(magnitude), base::NegLog1m(fraction), base::Fma(x, x, -x),
           x * 3.0f + 0.1f, base::Silu(x)}};
}

PAGODA_DEVICE std::uint32_t PairAt(const std::uint16_t* row) {
  return *reinterpret_cast<const std::uint32_t*>(row);
}

// A CTA of one warp per case.
PAGODA_KERNEL(kWarpLanes, 1) SwapOperands(PAGODA_ARGUMENT SwapArguments arguments) {
  const int g = ThreadIndex() / 4;
  const int t = ThreadIndex() % 4;
  const std::int64_t number = CtaX();
  const float* const c = arguments.c + number * 128;
  Sums4 sums = {
      {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1]}};
  Sums4 swapped[2];
  for (int half = 0; half < 2; ++half) {
    for (int e = 0; e < 2; ++e) {
      swapped[half].values[e] = c[(half * 8 + 2 * t + e) * 8 + g];
      swapped[half].values[2 + e] = 0.0f;
    }
  }
  for (int step = 0; step < arguments.steps; ++step) {
    const std::uint16_t* const a = arguments.a + (number * arguments.steps + step) * 256;
    const std::uint16_t* const b = arguments.b + (number * arguments.steps + step) * 128;
    const Fragment4 left = {{PairAt(a + g * 16 + 2 * t), PairAt(a + (g + 8) * 16 + 2 * t),
                             PairAt(a + g * 16 + 2 * t + 8), PairAt(a + (g + 8) * 16 + 2 * t + 8)}};
    const std::uint32_t low = PairAt(b + g * 16 + 2 * t);
    const std::uint32_t high = PairAt(b + g * 16 + 2 * t + 8);
    MultiplyAdd(sums, left, low, high);
    const Fragment4 exchanged = {{low, 0u, high, 0u}};
    for (int half = 0; half < 2; ++half) {
      const std::uint16_t* const row = a + (half * 8 + g) * 16 + 2 * t;
      MultiplyAdd(swapped[half], exchanged, PairAt(row), PairAt(row + 8));
    }
  }
  float* const out = arguments.out + number * 128;
  float* const other = arguments.swapped + number * 128;
  for (int e = 0; e < 4; ++e) out[(g + e / 2 * 8) * 8 + 2 * t + e % 2] = sums.values[e];
  for (int half = 0; half < 2; ++half) {
    for (int e = 0; e < 2; ++e) other[(half * 8 + 2 * t + e) * 8 + g] = swapped[half].values[e];
  }
}

inline constexpr int kMovesSharedBytes = 32 * 16 + 32 * 16;

// One warp.
PAGODA_KERNEL(kWarpLanes, 1) MoveData(PAGODA_ARGUMENT MovesArguments arguments) {
  const int lane = ThreadIndex();
  auto* const tile = reinterpret_cast<std::uint16_t*>(SharedMemory());
  auto* const filled = reinterpret_cast<std::uint32_t*>(SharedMemory() + 32 * 16);
  CopyAsync16(tile + lane * 8, arguments.in + lane * 8, true);
  CommitAsync();
  CopyAsync16(filled + lane * 4, arguments.in + lane * 8, lane / 2 % 2 == 0);
  CommitAsync();
  WaitAsync<1>();
  SyncCta();
  const Fragment4 plain = LoadMatrix4(tile + lane * 8);
  const Fragment4 transposed = LoadMatrix4Transposed(tile + lane * 8);
  for (int m = 0; m < 4; ++m) {
    arguments.plain[lane * 4 + m] = plain.words[m];
    arguments.transposed[lane * 4 + m] = transposed.words[m];
  }
  for (int i = 0; i < 5; ++i) {
    arguments.shuffled[i * 32 + lane] = ShuffleXor(static_cast<float>(lane), 1 << i);
  }
  WaitAsync<0>();
  for (int w = 0; w < 4; ++w) arguments.filled[lane * 4 + w] = filled[lane * 4 + w];
}

PAGODA_KERNEL(kNumbersThreads, 1) ComputeNumbers(PAGODA_ARGUMENT NumbersArguments arguments) {
  const int i = CtaX() * kNumbersThreads + ThreadIndex();
  if (i >= arguments.count) return;
  const Numbers numbers = ExactNumbers(arguments.in[i]);
  for (int f = 0; f < kNumFunctions; ++f) arguments.out[i * kNumFunctions + f] = numbers.values[f];
  const auto word = static_cast<std::uint32_t>(i);
  const auto words = base::Philox4x32({word, word + 1, word + 2, word + 3}, word);
  for (int w = 0; w < 4; ++w) arguments.words[i * 4 + w] = words[static_cast<std::size_t>(w)];
  arguments.packed[i] = PackBf16(arguments.in[i], -arguments.in[i]);
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
