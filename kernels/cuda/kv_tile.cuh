#pragma once

// What the attention kernels share: tiles of paged K and V in shared memory, and the merge of
// chunks.

#include <limits>

#include "base/exact_math.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/mutation.cuh"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr std::uint32_t kOnes = 0x3f803f80u;  // two bf16 ones

// Offset of a 16-byte piece in a row of D bf16, pieces exchanged by row so that the eight rows that
// a matrix load reads lie in different banks.
template <int kHeadSize>
PAGODA_DEVICE int TileOffset(int row, int piece) {
  const int exchange = kHeadSize % 64 == 0 ? row % 8 : row / 2 % 4;
  return row * kHeadSize + (piece ^ exchange) * 8;
}

// The K and V that a CTA reads: of one sequence, layer and KV head, positions before `end`.
struct KvContext {
  const KvArguments* kv;
  const std::uint32_t* table;  // of the sequence's blocks
  int layer;
  int kv_head;
  int end;
};

// K and V of the kTile positions from `first` on; zeros past the end, where nothing is read.
template <int kHeadSize, int kTile, int kThreads>
PAGODA_DEVICE void LoadKvTile(const KvContext& context, int first, Bf16* keys, Bf16* values) {
  constexpr int kPieces = kHeadSize / 8;
  const KvArguments& kv = *context.kv;
  const bool soon = Mutated(Mutation::kAttentionTakesTheNextBlockTooSoon);
  const bool reads_null = Mutated(Mutation::kAttentionReadsTheNullBlock);
  const std::int64_t layer = Mutated(Mutation::kAttentionFirstLayerForAll) ? 0 : context.layer;
  for (int i = ThreadIndex(); i < kTile * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int piece = i % kPieces;
    const int position = first + row;
    const bool valid = position < context.end;
    const int ahead = soon && position + 1 < context.end ? 1 : 0;
    const std::int64_t block = valid ? context.table[(position + ahead) >> kv.block_shift] : 0;
    const std::int64_t token = position & ((1 << kv.block_shift) - 1);
    const auto source = [&](const KvPlaneArguments& plane) {
      return plane.base + block * plane.block_stride + layer * plane.layer_stride +
             std::int64_t{context.kv_head} * plane.head_stride + token * plane.token_stride +
             piece * 16;
    };
    const int to = Mutated(Mutation::kAttentionStoresPiecesUnexchanged)
                       ? row * kHeadSize + piece * 8
                       : TileOffset<kHeadSize>(row, piece);
    CopyAsync16(keys + to, source(kv.key), valid);
    CopyAsync16(values + to, source(kv.value), valid || reads_null);
  }
}

// What scales the total so far (a) and the chunk that joins it (b).
struct MergeScales {
  float a, b;
};

// A chunk's maximum and sum of weights join the total of those before it.
PAGODA_DEVICE MergeScales MergeSums(float chunk_max, float chunk_sum, float& max, float& sum) {
  const float greater = Greater(max, chunk_max);
  const float against = greater == kMinusInfinity ? 0.0f : greater;
  MergeScales scales = {base::Exp(max - against), base::Exp(chunk_max - against)};
  if (Mutated(Mutation::kAttentionMergeForgetsTheOld)) scales.a = 0.0f;
  if (Mutated(Mutation::kAttentionMergeSwapsScales)) scales = {scales.b, scales.a};
  if (!Mutated(Mutation::kAttentionMergeKeepsTheFirstMaximum)) max = greater;
  sum = base::Fma(chunk_sum, scales.b, sum * scales.a);
  return scales;
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
