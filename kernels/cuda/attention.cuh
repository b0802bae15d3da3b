#pragma once

// Causal attention of packed query rows over paged K and V: prefill, and decode as prefill of one
// token.
// Shapes   query, out [T, H D]; K and V by KvArguments, bf16; the table of an item has an entry for
//          each block up to the last position of its tokens; entries after it are not read.
// Requires D of the table in kernel_table.h; strides of K and V multiples of 16 bytes.
// Order    chunks of 256 tokens at absolute positions, tiles of 64 (32 at D = 256) in them. In a
//          tile: scores over d in steps of 16; the maximum once; weights rounded to bf16; their sum
//          and the weighted sum of V over tokens in steps of 16. Chunks are merged left to right.
//          A row's bits depend on nothing but its own query, K and V.
// Source   online softmax (FlashAttention-2); rows of all heads that share K and V packed together
//          (FlashInfer).

#include "base/exact_math.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/kv_tile.cuh"
#include "kernels/cuda/mutation.cuh"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

// What is the same for all threads of a CTA, and where its tiles lie in shared memory.
template <int kHeadSize>
struct AttentionCta {
  static constexpr AttentionShape kShape = AttentionShapeOf(kHeadSize);
  static constexpr int kTileElements = kShape.tile * kHeadSize;

  const AttentionArguments* arguments;
  AttentionItem item;
  int first_packed_row;
  KvContext context;  // up to the last position that any row sees
  Bf16* keys;
  Bf16* values;
  Bf16* query;
  float* total;
};

// What one lane holds for its rows g and g + 8.
struct LaneRows {
  int position[2];  // the last one the row sees; -1: no row
  int warp_end;     // one past the last position that any row of the warp sees
};

// One chunk's softmax, not yet divided: largest score, sum of weights, weighted sum of V.
template <int kHeadSize>
struct ChunkState {
  Sums4 out[kHeadSize / 8];
  Sums4 sum;  // every column the same
  float max[2];
};

template <int kHeadSize>
PAGODA_DEVICE AttentionCta<kHeadSize> StartAttention(const AttentionArguments& arguments) {
  using Cta = AttentionCta<kHeadSize>;
  const AttentionTile tile = arguments.tiles[CtaX()];
  Cta cta;
  cta.arguments = &arguments;
  cta.item = arguments.items[tile.item];
  cta.first_packed_row = tile.first_packed_row;
  const int last_token = (tile.first_packed_row + Cta::kShape.rows - 1) / arguments.group;
  const int last_of_item = cta.item.num_tokens - 1;
  const int end =
      cta.item.first_position + (last_token < last_of_item ? last_token : last_of_item) + 1;
  cta.context = {&arguments.kv, arguments.block_table + cta.item.first_table_entry, arguments.layer,
                 CtaY(), end};
  cta.keys = reinterpret_cast<Bf16*>(SharedMemory());
  cta.values = cta.keys + Cta::kShape.stages * Cta::kTileElements;
  cta.query = cta.values + Cta::kShape.stages * Cta::kTileElements;
  cta.total = reinterpret_cast<float*>(cta.query + Cta::kShape.rows * kHeadSize);
  return cta;
}

template <int kHeadSize>
PAGODA_DEVICE bool IsRow(const AttentionCta<kHeadSize>& cta, int row) {
  return cta.first_packed_row + row < cta.item.num_tokens * cta.arguments->group;
}

// Element 0 of the CTA's row `row` in a matrix [T, H D]. Requires: IsRow.
template <int kHeadSize>
PAGODA_DEVICE std::int64_t RowOffset(const AttentionCta<kHeadSize>& cta, int row,
                                     std::int64_t stride) {
  const int packed = cta.first_packed_row + row;
  const int of_group =
      Mutated(Mutation::kAttentionOneHeadForAll) ? 0 : packed % cta.arguments->group;
  const int head = cta.context.kv_head * cta.arguments->group + of_group;
  const std::int64_t token = cta.item.first_row + packed / cta.arguments->group;
  return token * stride + std::int64_t{head} * kHeadSize;
}

// The query rows, rounded to bf16; zeros where there is no row.
template <int kHeadSize>
PAGODA_DEVICE void LoadQuery(const AttentionCta<kHeadSize>& cta) {
  constexpr AttentionShape kShape = AttentionCta<kHeadSize>::kShape;
  constexpr int kPairs = kHeadSize / 2;
  const int threads =
      kShape.NumThreads() / (Mutated(Mutation::kAttentionTwoThreadsLoadEachPair) ? 2 : 1);
  for (int i = ThreadIndex(); i < kShape.rows * kPairs; i += threads) {
    const int row = i / kPairs;
    const int pair = i % kPairs;
    std::uint32_t rounded = 0;
    if (IsRow(cta, row)) {
      const float* const source =
          cta.arguments->query.data + RowOffset(cta, row, cta.arguments->query.stride) + 2 * pair;
      rounded = PackBf16(source[0], source[1]);
    }
    const int at = TileOffset<kHeadSize>(row, pair / 4) + pair % 4 * 2;
    *reinterpret_cast<std::uint32_t*>(cta.query + at) = rounded;
  }
}

template <int kHeadSize>
PAGODA_DEVICE void LoadTile(const AttentionCta<kHeadSize>& cta, int stage, int first) {
  using Cta = AttentionCta<kHeadSize>;
  const int at = stage * Cta::kTileElements;
  LoadKvTile<kHeadSize, Cta::kShape.tile, Cta::kShape.NumThreads()>(cta.context, first,
                                                                    cta.keys + at, cta.values + at);
}

// Scores of the warp's 16 rows and the tile's tokens, scaled; -infinity where a row sees nothing.
template <int kHeadSize>
PAGODA_DEVICE void ScoreTile(const AttentionCta<kHeadSize>& cta, const LaneRows& rows,
                             const Bf16* keys, int first, Sums4* scores) {
  constexpr int kTile = AttentionCta<kHeadSize>::kShape.tile;
  const int warp = ThreadIndex() / kWarpLanes;
  const int lane = ThreadIndex() % kWarpLanes;
  PAGODA_UNROLL
  for (int i = 0; i < kTile / 8; ++i) scores[i] = Sums4{{0.0f, 0.0f, 0.0f, 0.0f}};
  PAGODA_NO_UNROLL
  for (int step = 0; step < kHeadSize / 16; ++step) {
    const int query_row = warp * 16 + lane % 16;
    const Fragment4 query =
        LoadMatrix4(cta.query + TileOffset<kHeadSize>(query_row, 2 * step + lane / 16));
    PAGODA_UNROLL
    for (int pair = 0; pair < kTile / 16; ++pair) {
      const int token = pair * 16 + lane / 16 * 8 + lane % 8;
      const Fragment4 key =
          LoadMatrix4(keys + TileOffset<kHeadSize>(token, 2 * step + lane / 8 % 2));
      const int swapped = Mutated(Mutation::kAttentionSwapsHalvesOfKeys) ? 1 : 0;
      MultiplyAdd(scores[2 * pair], query, key.words[swapped], key.words[1 - swapped]);
      MultiplyAdd(scores[2 * pair + 1], query, key.words[2], key.words[3]);
    }
  }
  const int more = (Mutated(Mutation::kAttentionSeesOneTokenMore) ? 1 : 0) -
                   (Mutated(Mutation::kAttentionSeesOneTokenLess) ? 1 : 0);
  PAGODA_UNROLL
  for (int i = 0; i < kTile / 8; ++i) {
    PAGODA_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int position = first + i * 8 + lane % 4 * 2 + e % 2;
      float& score = scores[i].values[e];
      score =
          position <= rows.position[e / 2] + more ? score * cta.arguments->scale : kMinusInfinity;
    }
  }
}

// Scores become weights against the new maximum, and what was summed before is brought to it.
template <int kHeadSize>
PAGODA_DEVICE void WeighTile(Sums4* scores, ChunkState<kHeadSize>& state) {
  constexpr int kTile = AttentionCta<kHeadSize>::kShape.tile;
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    float max = state.max[r];
    PAGODA_UNROLL
    for (int i = 0; i < kTile / 8; ++i) {
      max = Greater(max, scores[i].values[2 * r]);
      max = Greater(max, scores[i].values[2 * r + 1]);
    }
    if (!Mutated(Mutation::kAttentionNoFirstShuffle)) max = Greater(max, ShuffleXor(max, 1));
    if (!Mutated(Mutation::kAttentionNoSecondShuffle)) max = Greater(max, ShuffleXor(max, 2));
    // A row that sees nothing has no maximum; its weights are all zero against any.
    const float against = max == kMinusInfinity ? 0.0f : max;
    const float alpha = base::Exp(state.max[r] - against);
    state.max[r] = max;
    PAGODA_UNROLL
    for (int i = 0; i < kTile / 8; ++i) {
      PAGODA_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& score = scores[i].values[2 * r + e];
        score = base::Exp(score - against);
      }
    }
    PAGODA_UNROLL
    for (int i = 0; i < kHeadSize / 8; ++i) {
      if (Mutated(Mutation::kAttentionNoRescaleOfValues)) continue;
      state.out[i].values[2 * r] = state.out[i].values[2 * r] * alpha;
      state.out[i].values[2 * r + 1] = state.out[i].values[2 * r + 1] * alpha;
    }
    if (Mutated(Mutation::kAttentionNoRescaleOfSums)) continue;
    state.sum.values[2 * r] = state.sum.values[2 * r] * alpha;
    state.sum.values[2 * r + 1] = state.sum.values[2 * r + 1] * alpha;
  }
}

// Adds the rounded weights, and V times them.
template <int kHeadSize>
PAGODA_DEVICE void SumTile(const Sums4* weights, const Bf16* values, ChunkState<kHeadSize>& state) {
  constexpr int kTile = AttentionCta<kHeadSize>::kShape.tile;
  const int lane = ThreadIndex() % kWarpLanes;
  PAGODA_UNROLL
  for (int step = 0; step < kTile / 16; ++step) {
    const float* const low = weights[2 * step].values;
    const float* const high = weights[2 * step + 1].values;
    const Fragment4 weight = {{PackBf16(low[0], low[1]), PackBf16(low[2], low[3]),
                               PackBf16(high[0], high[1]), PackBf16(high[2], high[3])}};
    MultiplyAdd(state.sum, weight, kOnes, kOnes);
    PAGODA_UNROLL
    for (int pair = 0; pair < kHeadSize / 16; ++pair) {
      const int token = step * 16 + lane / 8 % 2 * 8 + lane % 8;
      const Bf16* const row = values + TileOffset<kHeadSize>(token, 2 * pair + lane / 16);
      const Fragment4 value = Mutated(Mutation::kAttentionValuesNotTransposed)
                                  ? LoadMatrix4(row)
                                  : LoadMatrix4Transposed(row);
      MultiplyAdd(state.out[2 * pair], weight, value.words[0], value.words[1]);
      MultiplyAdd(state.out[2 * pair + 1], weight, value.words[2], value.words[3]);
    }
  }
}

// The element of the running total for column `column` of the lane's row r; rows are exchanged in
// groups of 8 columns so that the lanes of a warp meet different banks.
template <int kHeadSize>
PAGODA_DEVICE float& TotalAt(const AttentionCta<kHeadSize>& cta, int r, int column) {
  const int g = ThreadIndex() % kWarpLanes / 4;
  const int row = ThreadIndex() / kWarpLanes * 16 + g + r * 8;
  return cta.total[row * kHeadSize + (column ^ (g % 4 * 8))];
}

struct Total {
  float max[2], sum[2];
};

// The chunk at `first` joins the total of each row that sees any of it.
template <int kHeadSize>
PAGODA_DEVICE void MergeChunk(const AttentionCta<kHeadSize>& cta, const LaneRows& rows, int first,
                              const ChunkState<kHeadSize>& state, Total& total) {
  const int column = ThreadIndex() % 4 * 2;
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (first > rows.position[r]) continue;
    const bool is_first = first == 0 && !Mutated(Mutation::kAttentionMergesTheFirstChunk);
    MergeScales scales = {0.0f, 1.0f};
    if (is_first) {
      total.max[r] = state.max[r];
      total.sum[r] = state.sum.values[2 * r];
    } else {
      scales = MergeSums(state.max[r], state.sum.values[2 * r], total.max[r], total.sum[r]);
    }
    PAGODA_UNROLL
    for (int i = 0; i < kHeadSize / 8; ++i) {
      PAGODA_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& to = TotalAt(cta, r, i * 8 + column + e);
        const float chunk = state.out[i].values[2 * r + e];
        to = is_first ? chunk : base::Fma(chunk, scales.b, to * scales.a);
      }
    }
  }
}

// Streams one chunk's tiles through shared memory. A warp none of whose rows sees a tile skips it:
// its weights would all be zero.
template <int kHeadSize>
PAGODA_DEVICE void AttendChunk(const AttentionCta<kHeadSize>& cta, const LaneRows& rows, int first,
                               ChunkState<kHeadSize>& state) {
  using Cta = AttentionCta<kHeadSize>;
  constexpr int kTile = Cta::kShape.tile;
  constexpr int kStages = Cta::kShape.stages;
  const int end = first + kChunkTokens < cta.context.end ? first + kChunkTokens : cta.context.end;
  const int num_tiles = base::DivUp(end - first, kTile);
  // No barrier here: the last chunk's last tile lay in the last stage, and its barrier let all
  // through only when they were done with the others, which are filled first.
  static_assert(kStages == 2 && kChunkTokens / kTile % kStages == 0);
  PAGODA_UNROLL
  for (int tile = 0; tile < kStages - 1; ++tile) {
    if (tile < num_tiles) LoadTile(cta, tile, first + tile * kTile);
    CommitAsync();
  }
  for (int tile = 0; tile < num_tiles; ++tile) {
    if (Mutated(Mutation::kAttentionWaitsTooLittle)) {
      WaitAsync<kStages - 1>();
    } else {
      WaitAsync<kStages - 2>();
    }
    const int next = tile + kStages - 1;
    const bool early = Mutated(Mutation::kAttentionRefillsBeforeTheBarrier);
    if (early && next < num_tiles) LoadTile(cta, next % kStages, first + next * kTile);
    // The tile has arrived for all, and all are done with the one that is overwritten next.
    if (!Mutated(Mutation::kAttentionNoBarrierBeforeATile)) SyncCta();
    if (!early && next < num_tiles) LoadTile(cta, next % kStages, first + next * kTile);
    CommitAsync();
    const int begin = first + tile * kTile;
    if (begin >= rows.warp_end) continue;
    const int at = tile % kStages * Cta::kTileElements;
    Sums4 scores[kTile / 8];
    ScoreTile(cta, rows, cta.keys + at, begin, scores);
    WeighTile(scores, state);
    SumTile(scores, cta.values + at, state);
  }
  WaitAsync<0>();
}

template <int kHeadSize>
PAGODA_DEVICE LaneRows RowsOfLane(const AttentionCta<kHeadSize>& cta) {
  const int warp_row = ThreadIndex() / kWarpLanes * 16;
  LaneRows rows = {{-1, -1}, 0};
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = warp_row + ThreadIndex() % kWarpLanes / 4 + r * 8;
    if (!IsRow(cta, row)) continue;
    rows.position[r] =
        cta.item.first_position + (cta.first_packed_row + row) / cta.arguments->group;
  }
  if (IsRow(cta, warp_row)) {
    const int of_warp = Mutated(Mutation::kAttentionWarpEndsWithItsFirstRow) ? 0 : 15;
    const int last = cta.first_packed_row + warp_row + of_warp;
    const int of_item = cta.item.num_tokens * cta.arguments->group - 1;
    rows.warp_end =
        cta.item.first_position + (last < of_item ? last : of_item) / cta.arguments->group + 1;
  }
  return rows;
}

// CTA (tile of packed rows, KV head); a warp has 16 rows.
template <int kHeadSize>
PAGODA_KERNEL(AttentionShapeOf(kHeadSize).NumThreads(), 1)
Attention(PAGODA_ARGUMENT AttentionArguments arguments) {
  const AttentionCta<kHeadSize> cta = StartAttention<kHeadSize>(arguments);
  const LaneRows rows = RowsOfLane(cta);
  LoadQuery(cta);
  Total total = {{kMinusInfinity, kMinusInfinity}, {0.0f, 0.0f}};
  for (int first = 0; first < cta.context.end; first += kChunkTokens) {
    ChunkState<kHeadSize> state = {};
    state.max[0] = state.max[1] = kMinusInfinity;
    AttendChunk(cta, rows, first, state);
    MergeChunk(cta, rows, first, state, total);
  }
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (rows.position[r] < 0) continue;
    const int row = ThreadIndex() / kWarpLanes * 16 + ThreadIndex() % kWarpLanes / 4 + r * 8;
    float* const out = arguments.out.data + RowOffset(cta, row, arguments.out.stride);
    for (int i = 0; i < kHeadSize / 8; ++i) {
      for (int e = 0; e < 2; ++e) {
        const int column = i * 8 + ThreadIndex() % 4 * 2 + e;
        // Adding zero makes -0 into 0: which of them a row of zeros sums to depends on how much of
        // a tile it does not see.
        out[column] = Divide(TotalAt(cta, r, column), total.sum[r]) + 0.0f;
      }
    }
  }
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
