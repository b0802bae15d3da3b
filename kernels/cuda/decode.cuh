#pragma once

// Attention of one new token per sequence over its paged K and V, a long context spread over many
// CTAs. Bit for bit what attention.cuh gives for the same row.
// Shapes   query, out [T, H D]; K and V by KvArguments, bf16; a slice is a chunk of 256 positions.
// Requires H / G at most kHeads.
// Order    that of attention.cuh. The products are its products with the operands exchanged: heads
//          are columns, tokens or dims rows. Warps share out tokens for the scores and dims for the
//          weighted sum, so no sum is ever split between them. Which CTA does which slice is the
//          host's plan; MergeDecode joins the slices of a row left to right.
// Source   split-KV decode (Flash-Decoding); heads as the short side of the product (lmdeploy).

#include "base/exact_math.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/kv_tile.cuh"
#include "kernels/cuda/mutation.cuh"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

template <int kHeadSize, int kHeads>
struct DecodeCta {
  static constexpr DecodeShape kShape = DecodeShapeOf(kHeadSize, kHeads);
  static constexpr int kTileElements = kShape.tile * kHeadSize;
  static constexpr int kColumns = kHeads / 8;                 // groups of 8 heads
  static constexpr int kScoreWarps = kShape.tile / 16;        // that have tokens of a tile
  static constexpr int kDimTiles = (kHeadSize / 16 + 3) / 4;  // of 16 dims, for one warp

  const DecodeArguments* arguments;
  KvContext context;
  Bf16* keys;
  Bf16* values;
  Bf16* weights;  // [heads][tile + 8]
  float* maxima;  // [warps][heads]
  int warp, g, t;
};

// One chunk's softmax, not yet divided. Of a lane: columns 2t and 2t + 1 of each group of heads.
template <int kHeadSize, int kHeads>
struct DecodeState {
  using Cta = DecodeCta<kHeadSize, kHeads>;
  Sums4 out[Cta::kColumns][Cta::kDimTiles];  // rows are dims
  Sums4 sum[Cta::kColumns];                  // every row the same; of warp 0 only
  float max[Cta::kColumns][2];
};

// The query's heads as columns of a product, rounded to bf16; zeros where there is no head.
template <int kHeadSize, int kHeads>
struct DecodeQuery {
  std::uint32_t pairs[kHeads / 8][kHeadSize / 16][2];
};

template <int kHeadSize, int kHeads>
PAGODA_DEVICE DecodeCta<kHeadSize, kHeads> StartDecode(const DecodeArguments& arguments) {
  using Cta = DecodeCta<kHeadSize, kHeads>;
  Cta cta;
  cta.arguments = &arguments;
  cta.keys = reinterpret_cast<Bf16*>(SharedMemory());
  cta.values = cta.keys + Cta::kShape.stages * Cta::kTileElements;
  cta.weights = cta.values + Cta::kShape.stages * Cta::kTileElements;
  cta.maxima = reinterpret_cast<float*>(cta.weights + kHeads * Cta::kShape.WeightStride());
  cta.warp = ThreadIndex() / kWarpLanes;
  cta.g = ThreadIndex() % kWarpLanes / 4;
  cta.t = ThreadIndex() % 4;
  return cta;
}

template <int kHeadSize, int kHeads>
PAGODA_DEVICE DecodeQuery<kHeadSize, kHeads> LoadDecodeQuery(
    const DecodeCta<kHeadSize, kHeads>& cta, std::int64_t row) {
  const DecodeArguments& arguments = *cta.arguments;
  DecodeQuery<kHeadSize, kHeads> query;
  PAGODA_UNROLL
  for (int n = 0; n < kHeads / 8; ++n) {
    const int head = n * 8 + cta.g;
    const float* const source =
        arguments.query.data + row * arguments.query.stride +
        std::int64_t{cta.context.kv_head * arguments.group + head} * kHeadSize;
    PAGODA_UNROLL
    for (int step = 0; step < kHeadSize / 16; ++step) {
      PAGODA_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int d = step * 16 + half * 8 + 2 * cta.t;
        query.pairs[n][step][half] =
            head < arguments.group ? PackBf16(source[d], source[d + 1]) : 0u;
      }
    }
  }
  return query;
}

// Scores of the warp's 16 tokens and all heads, scaled; -infinity past the end.
template <int kHeadSize, int kHeads>
PAGODA_DEVICE void ScoreTokens(const DecodeCta<kHeadSize, kHeads>& cta,
                               const DecodeQuery<kHeadSize, kHeads>& query, const Bf16* keys,
                               int first, Sums4* scores) {
  const int lane = ThreadIndex() % kWarpLanes;
  PAGODA_UNROLL
  for (int step = 0; step < kHeadSize / 16; ++step) {
    const int token = cta.warp * 16 + lane % 16;
    const Fragment4 key = LoadMatrix4(keys + TileOffset<kHeadSize>(token, 2 * step + lane / 16));
    PAGODA_UNROLL
    for (int n = 0; n < kHeads / 8; ++n) {
      MultiplyAdd(scores[n], key, query.pairs[n][step][0], query.pairs[n][step][1]);
    }
  }
  PAGODA_UNROLL
  for (int n = 0; n < kHeads / 8; ++n) {
    PAGODA_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int position = first + cta.warp * 16 + cta.g + e / 2 * 8;
      float& score = scores[n].values[e];
      score = position < cta.context.end ? score * cta.arguments->scale : kMinusInfinity;
    }
  }
}

// The largest score of the warp's tokens for each head, to where all warps find it.
template <int kHeadSize, int kHeads>
PAGODA_DEVICE void ShareMaxima(const DecodeCta<kHeadSize, kHeads>& cta, const Sums4* scores) {
  PAGODA_UNROLL
  for (int n = 0; n < kHeads / 8; ++n) {
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      float max = Greater(scores[n].values[e], scores[n].values[2 + e]);
      max = Greater(max, ShuffleXor(max, 4));
      if (!Mutated(Mutation::kDecodeNoSecondShuffle)) max = Greater(max, ShuffleXor(max, 8));
      max = Greater(max, ShuffleXor(max, 16));
      if (cta.g == 0) StoreShared(&cta.maxima[cta.warp * kHeads + n * 8 + 2 * cta.t + e], max);
    }
  }
}

// The new maximum of each head; what was summed before is brought to it, and the warp's scores
// become weights, rounded, where all warps find them.
template <int kHeadSize, int kHeads>
PAGODA_DEVICE void WeighTokens(const DecodeCta<kHeadSize, kHeads>& cta, const Sums4* scores,
                               DecodeState<kHeadSize, kHeads>& state) {
  using Cta = DecodeCta<kHeadSize, kHeads>;
  PAGODA_UNROLL
  for (int n = 0; n < Cta::kColumns; ++n) {
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int head = n * 8 + 2 * cta.t + e;
      float max = state.max[n][e];
      PAGODA_UNROLL
      for (int w = 0; w < Cta::kScoreWarps; ++w) {
        max = Greater(max, LoadShared(&cta.maxima[w * kHeads + head]));
      }
      const float against = max == kMinusInfinity ? 0.0f : max;
      const float alpha = base::Exp(state.max[n][e] - against);
      state.max[n][e] = max;
      if (cta.warp < Cta::kScoreWarps) {
        PAGODA_UNROLL
        for (int j = 0; j < 2; ++j) {
          const float weight = base::Exp(scores[n].values[2 * j + e] - against);
          const int token = cta.warp * 16 + cta.g + j * 8;
          StoreShared(&cta.weights[head * Cta::kShape.WeightStride() + token],
                      static_cast<Bf16>(PackBf16(weight, 0.0f)));
        }
      }
      PAGODA_UNROLL
      for (int a = 0; a < Cta::kDimTiles; ++a) {
        state.out[n][a].values[e] = state.out[n][a].values[e] * alpha;
        state.out[n][a].values[2 + e] = state.out[n][a].values[2 + e] * alpha;
      }
      if (Mutated(Mutation::kDecodeNoRescaleOfSums)) continue;
      state.sum[n].values[e] = state.sum[n].values[e] * alpha;
      state.sum[n].values[2 + e] = state.sum[n].values[2 + e] * alpha;
    }
  }
}

// Adds the weights of all tokens, and V times them for the warp's dims.
template <int kHeadSize, int kHeads>
PAGODA_DEVICE void SumTokens(const DecodeCta<kHeadSize, kHeads>& cta, const Bf16* values,
                             DecodeState<kHeadSize, kHeads>& state) {
  using Cta = DecodeCta<kHeadSize, kHeads>;
  const int lane = ThreadIndex() % kWarpLanes;
  const Fragment4 ones = {{kOnes, kOnes, kOnes, kOnes}};
  PAGODA_UNROLL
  for (int step = 0; step < Cta::kShape.tile / 16; ++step) {
    std::uint32_t low[Cta::kColumns], high[Cta::kColumns];
    PAGODA_UNROLL
    for (int n = 0; n < Cta::kColumns; ++n) {
      const Bf16* const row =
          cta.weights + (n * 8 + cta.g) * Cta::kShape.WeightStride() + step * 16 + 2 * cta.t;
      low[n] = LoadShared(reinterpret_cast<const std::uint32_t*>(row));
      high[n] = LoadShared(reinterpret_cast<const std::uint32_t*>(row + 8));
      if (cta.warp == 0) MultiplyAdd(state.sum[n], ones, low[n], high[n]);
    }
    PAGODA_UNROLL
    for (int a = 0; a < Cta::kDimTiles; ++a) {
      const int dims = cta.warp + a * 4;
      if (dims >= kHeadSize / 16) continue;
      const int token = step * 16 + lane % 8 + lane / 16 * 8;
      const Fragment4 value =
          LoadMatrix4Transposed(values + TileOffset<kHeadSize>(token, 2 * dims + lane / 8 % 2));
      PAGODA_UNROLL
      for (int n = 0; n < Cta::kColumns; ++n) {
        MultiplyAdd(state.out[n][a], value, low[n], high[n]);
      }
    }
  }
}

template <int kHeadSize, int kHeads>
PAGODA_DEVICE void StorePartial(const DecodeCta<kHeadSize, kHeads>& cta, std::int64_t slice,
                                const DecodeState<kHeadSize, kHeads>& state) {
  using Cta = DecodeCta<kHeadSize, kHeads>;
  const DecodeArguments& arguments = *cta.arguments;
  PAGODA_UNROLL
  for (int n = 0; n < Cta::kColumns; ++n) {
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int of_group = n * 8 + 2 * cta.t + e;
      if (of_group >= arguments.group) continue;
      const int head = cta.context.kv_head * arguments.group + of_group;
      const std::int64_t at = slice * arguments.num_query_heads + head;
      PAGODA_UNROLL
      for (int a = 0; a < Cta::kDimTiles; ++a) {
        const int dims = cta.warp + a * 4;
        if (dims >= kHeadSize / 16) continue;
        float* const out = arguments.partial_out + at * kHeadSize + dims * 16 + cta.g;
        out[0] = state.out[n][a].values[e];
        out[8] = state.out[n][a].values[2 + e];
      }
      if (cta.warp != 0) continue;
      if (cta.g != 0 && !Mutated(Mutation::kDecodeEveryRowStoresItsSum)) continue;
      arguments.partial_sums[2 * at] = state.max[n][e];
      arguments.partial_sums[2 * at + 1] = state.sum[n].values[e];
    }
  }
}

// Streams the tiles of one slice through shared memory.
template <int kHeadSize, int kHeads>
PAGODA_DEVICE void AttendSlice(const DecodeCta<kHeadSize, kHeads>& cta,
                               const DecodeQuery<kHeadSize, kHeads>& query, int first,
                               DecodeState<kHeadSize, kHeads>& state) {
  using Cta = DecodeCta<kHeadSize, kHeads>;
  constexpr int kTile = Cta::kShape.tile;
  constexpr int kStages = Cta::kShape.stages;
  const int num_tiles = base::DivUp(cta.context.end - first, kTile);
  const auto load = [&](int tile) {
    const int at = tile % kStages * Cta::kTileElements;
    LoadKvTile<kHeadSize, kTile, DecodeShape::kThreads>(cta.context, first + tile * kTile,
                                                        cta.keys + at, cta.values + at);
  };
  // All are done with the last slice's tiles.
  if (!Mutated(Mutation::kDecodeNoBarrierBetweenSlices)) SyncCta();
  PAGODA_UNROLL
  for (int tile = 0; tile < kStages - 1; ++tile) {
    if (tile < num_tiles) load(tile);
    CommitAsync();
  }
  for (int tile = 0; tile < num_tiles; ++tile) {
    WaitAsync<kStages - 2>();
    // The tile has arrived for all, and all are done with the one that is overwritten next.
    SyncCta();
    if (tile + kStages - 1 < num_tiles) load(tile + kStages - 1);
    CommitAsync();
    const int at = tile % kStages * Cta::kTileElements;
    Sums4 scores[Cta::kColumns] = {};
    if (cta.warp < Cta::kScoreWarps) {
      ScoreTokens(cta, query, cta.keys + at, first + tile * kTile, scores);
      ShareMaxima(cta, scores);
    }
    if (!Mutated(Mutation::kDecodeNoBarrierAfterMaxima)) SyncCta();
    WeighTokens(cta, scores, state);
    if (!Mutated(Mutation::kDecodeNoBarrierAfterWeights)) SyncCta();
    SumTokens(cta, cta.values + at, state);
  }
  WaitAsync<0>();
}

// CTA (share of slices, KV head).
template <int kHeadSize, int kHeads>
PAGODA_KERNEL(DecodeShape::kThreads, 1)
Decode(PAGODA_ARGUMENT DecodeArguments arguments) {
  DecodeCta<kHeadSize, kHeads> cta = StartDecode<kHeadSize, kHeads>(arguments);
  const DecodeShare share = arguments.shares[CtaX()];
  for (int i = 0; i < share.num_slices; ++i) {
    const int number = share.first_slice + i;
    const DecodeSlice slice = arguments.slices[number];
    cta.context = {&arguments.kv, arguments.block_table + slice.first_table_entry, arguments.layer,
                   CtaY(), slice.end};
    const DecodeQuery<kHeadSize, kHeads> query = LoadDecodeQuery(cta, slice.row);
    DecodeState<kHeadSize, kHeads> state = {};
    PAGODA_UNROLL
    for (int n = 0; n < kHeads / 8; ++n) state.max[n][0] = state.max[n][1] = kMinusInfinity;
    AttendSlice(cta, query, slice.first, state);
    StorePartial(cta, number, state);
  }
}

// CTA (row, query head): its slices, left to right.
PAGODA_KERNEL(kElementThreads, 4) MergeDecode(PAGODA_ARGUMENT MergeArguments arguments) {
  const DecodeRow row = arguments.rows[CtaX()];
  const std::int64_t head = CtaY();
  float* const out =
      arguments.out.data + row.row * arguments.out.stride + head * arguments.head_size;
  for (int d = ThreadIndex(); d < arguments.head_size; d += kElementThreads) {
    float max = 0.0f, sum = 0.0f, total = 0.0f;
    for (int i = 0; i < row.num_slices; ++i) {
      const std::int64_t at = std::int64_t{row.first_slice + i} * arguments.num_query_heads + head;
      const float chunk = arguments.partial_out[at * arguments.head_size + d];
      const float chunk_max = arguments.partial_sums[2 * at];
      const float chunk_sum = arguments.partial_sums[2 * at + 1];
      if (i == 0) {
        max = chunk_max;
        sum = chunk_sum;
        total = chunk;
      } else {
        const MergeScales scales = MergeSums(chunk_max, chunk_sum, max, sum);
        total = base::Fma(chunk, scales.b, total * scales.a);
      }
    }
    // As in attention.cuh: a zero is +0.
    out[d] = Divide(total, sum) + 0.0f;
  }
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
