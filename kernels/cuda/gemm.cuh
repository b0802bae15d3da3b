#pragma once

// out[M, N] = x[M, K] w[N, K]^T in bf16 with fp32 sums: our own product, for any M, and the order
// that every other product of this backend is measured by.
// Order: one sum per output; k in steps of 16, ascending; what a step does inside is the machine's.
// K is filled up with zeros to a multiple of 64, which adds nothing.
// Two forms that give the same bits, since a step of a swapped product is the same step: weights on
// the 16 rows of the instruction and tokens on its 8 columns for few rows, the other way round for
// many.
// Source: multi-stage asynchronous copies in front of tensor-core products (the idea is CUTLASS's).

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/mutation.cuh"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

inline constexpr int kGemmPieces = GemmShape::kInputTile / 8;  // of 16 bytes in a row of a tile

// A row of a tile is 128 bytes, all banks once; exchanging its pieces by row keeps the eight rows
// that a matrix load reads in different banks.
PAGODA_DEVICE int GemmOffset(int row, int piece) {
  return row * GemmShape::kInputTile + (piece ^ (row % 8)) * 8;
}

// Rows first_row ... of a matrix with K columns, the 64 from first_input on; zeros outside.
template <int kRows>
PAGODA_DEVICE void LoadGemmTile(Bf16* tile, const std::uint16_t* source, std::int64_t stride,
                                int first_row, int num_rows, int first_input, int num_inputs) {
  for (int i = ThreadIndex(); i < kRows * kGemmPieces; i += GemmShape::kThreads) {
    const int row = i / kGemmPieces;
    const int piece = i % kGemmPieces;
    const int k = first_input + piece * 8;
    const bool in_k = k < num_inputs || Mutated(Mutation::kGemmReadsPastK);
    const bool valid = first_row + row < num_rows && in_k;
    const std::int64_t at = valid ? std::int64_t{first_row + row} * stride + k : 0;
    const int to = Mutated(Mutation::kGemmStoresPiecesUnexchanged)
                       ? GemmOffset(0, piece) + row * GemmShape::kInputTile
                       : GemmOffset(row, piece);
    CopyAsync16(tile + to, source + at, valid);
  }
}

// Streams both operands through shared memory and calls multiply(x_tile, w_tile) for each 64 of K.
template <int kRowTile, int kOutputTile, int kStages, typename Multiply>
PAGODA_DEVICE void StreamGemm(const GemmArguments& arguments, int first_row, int first_output,
                              const Multiply& multiply) {
  constexpr int kTileWords = GemmShape::kInputTile;
  Bf16* const x_tiles = reinterpret_cast<Bf16*>(SharedMemory());
  Bf16* const w_tiles = x_tiles + kStages * kRowTile * kTileWords;
  const int num_steps = base::DivUp(arguments.inputs, GemmShape::kInputTile);
  const auto load = [&](int step) {
    const int stage = step % kStages;
    const int first_input = step * GemmShape::kInputTile;
    LoadGemmTile<kRowTile>(x_tiles + stage * kRowTile * kTileWords, arguments.x, arguments.x_stride,
                           first_row, arguments.rows, first_input, arguments.inputs);
    LoadGemmTile<kOutputTile>(w_tiles + stage * kOutputTile * kTileWords, arguments.w,
                              arguments.inputs, first_output, arguments.outputs, first_input,
                              arguments.inputs);
  };
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < num_steps) load(step);
    CommitAsync();
  }
  for (int step = 0; step < num_steps; ++step) {
    if (Mutated(Mutation::kGemmWaitsTooLittle)) {
      WaitAsync<kStages - 1>();
    } else {
      WaitAsync<kStages - 2>();
    }
    const bool early = Mutated(Mutation::kGemmRefillsBeforeTheBarrier);
    if (early && step + kStages - 1 < num_steps) load(step + kStages - 1);
    // The stage has arrived for all, and all are done with the one that is filled next.
    const bool last = step + 1 == num_steps;
    if (!Mutated(Mutation::kGemmNoBarrier) &&
        !(last && Mutated(Mutation::kGemmNoBarrierInTheLastStep))) {
      SyncCta();
    }
    if (!early && step + kStages - 1 < num_steps) load(step + kStages - 1);
    CommitAsync();
    const int stage = (step + (Mutated(Mutation::kGemmTakesTheNextStage) ? 1 : 0)) % kStages;
    multiply(x_tiles + stage * kRowTile * kTileWords, w_tiles + stage * kOutputTile * kTileWords);
  }
  WaitAsync<0>();
}

PAGODA_DEVICE void StoreGemm(const GemmArguments& arguments, int row, int output, float sum) {
  const int outputs = arguments.outputs + (Mutated(Mutation::kGemmWritesPastN) ? 1 : 0);
  if (row >= arguments.rows || output >= outputs) return;
  float* const at = arguments.out.data + std::int64_t{row} * arguments.out.stride + output;
  *at = arguments.adds && !Mutated(Mutation::kGemmForgetsToAdd) ? *at + sum : sum;
}

// CTA (64 outputs, 8 rows); a warp has 16 outputs.
PAGODA_KERNEL(GemmShape::kThreads, 2) GemmFewRows(PAGODA_ARGUMENT GemmArguments arguments) {
  constexpr GemmShape kShape = kGemmFewRows;
  const int warp = ThreadIndex() / kWarpLanes;
  const int lane = ThreadIndex() % kWarpLanes;
  const int g = lane / 4;
  const int t = lane % 4;
  const int first_output = CtaX() * kShape.output_tile;
  const int first_row = CtaY() * kShape.row_tile;
  Sums4 sums = {{0.0f, 0.0f, 0.0f, 0.0f}};
  StreamGemm<kShape.row_tile, kShape.output_tile, kShape.stages>(
      arguments, first_row, first_output, [&](const Bf16* x_tile, const Bf16* w_tile) {
        PAGODA_UNROLL
        for (int k = 0; k < GemmShape::kInputTile / 16; ++k) {
          const int w_row = warp * 16 + lane % 16;
          const Fragment4 w = LoadMatrix4(w_tile + GemmOffset(w_row, 2 * k + lane / 16));
          const auto pair = [&](int piece) {
            return *reinterpret_cast<const std::uint32_t*>(x_tile + GemmOffset(g, piece) + 2 * t);
          };
          const int swapped = Mutated(Mutation::kGemmSwapsHalves) ? 1 : 0;
          MultiplyAdd(sums, w, pair(2 * k + swapped), pair(2 * k + 1 - swapped));
        }
      });
  for (int i = 0; i < 4; ++i) {
    StoreGemm(arguments, first_row + 2 * t + i % 2, first_output + warp * 16 + g + i / 2 * 8,
              sums.values[i]);
  }
}

// CTA (64 outputs, 64 rows); a warp has 16 rows and all outputs.
PAGODA_KERNEL(GemmShape::kThreads, 2) GemmManyRows(PAGODA_ARGUMENT GemmArguments arguments) {
  constexpr GemmShape kShape = kGemmManyRows;
  constexpr int kPairs = kShape.output_tile / 16;
  const int warp = ThreadIndex() / kWarpLanes;
  const int lane = ThreadIndex() % kWarpLanes;
  const int first_output = CtaX() * kShape.output_tile;
  const int first_row = CtaY() * kShape.row_tile;
  // Nothing to sum up for a warp past the last row; it still loads and meets the others.
  const bool works = first_row + warp * 16 < arguments.rows;
  Sums4 sums[2 * kPairs] = {};
  StreamGemm<kShape.row_tile, kShape.output_tile, kShape.stages>(
      arguments, first_row, first_output, [&](const Bf16* x_tile, const Bf16* w_tile) {
        if (!works) return;
        PAGODA_UNROLL
        for (int k = 0; k < GemmShape::kInputTile / 16; ++k) {
          const int x_row = warp * 16 + lane % 16;
          const Fragment4 x = LoadMatrix4(x_tile + GemmOffset(x_row, 2 * k + lane / 16));
          PAGODA_UNROLL
          for (int pair = 0; pair < kPairs; ++pair) {
            const int w_row = pair * 16 + lane / 16 * 8 + lane % 8;
            const Fragment4 w = LoadMatrix4(w_tile + GemmOffset(w_row, 2 * k + lane / 8 % 2));
            MultiplyAdd(sums[2 * pair], x, w.words[0], w.words[1]);
            MultiplyAdd(sums[2 * pair + 1], x, w.words[2], w.words[3]);
          }
        }
      });
  PAGODA_UNROLL
  for (int n = 0; n < 2 * kPairs; ++n) {
    for (int i = 0; i < 4; ++i) {
      StoreGemm(arguments, first_row + warp * 16 + lane / 4 + i / 2 * 8,
                first_output + n * 8 + lane % 4 * 2 + i % 2, sums[n].values[i]);
    }
  }
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
