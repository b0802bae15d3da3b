#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/arguments.h"

// Which kernels there are and what each takes of a multiprocessor. The launch bounds in the sources
// and the shared bytes of launches come from here, and the static gate reads it.
namespace pagoda::kernels::cuda {

enum class KernelId : std::uint16_t {
  kEmbed,
  kRmsNorm,
  kAdd,
  kRoundRows,
  kSiluMul,
  kRope,
  kWriteKv,
  kRopeAndWriteKv,
  kZeroBlocks,
  kCopyBlocks,
  kGemmFewRows,
  kGemmManyRows,
  kAttention32,
  kAttention64,
  kAttention96,
  kAttention128,
  kAttention256,
  kDecode32,
  kDecode64,
  kDecode96,
  kDecode128,
  kDecode256,
  kDecodeWide32,
  kDecodeWide64,
  kDecodeWide96,
  kDecodeWide128,
  kDecodeWide256,
  kMergeDecode,
  kSample,
};
inline constexpr std::size_t kNumKernels = 29;

// Threads of every kernel that works element by element.
inline constexpr int kElementThreads = 128;
inline constexpr int kElementsPerThread = 4;
inline constexpr int kNormRowsPerCta = 4;  // a warp a row
inline constexpr int kSampleSharedBytes = 2 * kElementThreads * 8;

// --- matrix products ---------------------------------------------------------------------------

struct GemmShape {
  int row_tile, output_tile;  // of M and N per CTA
  int stages;
  static constexpr int kInputTile = 64;  // K per stage
  static constexpr int kThreads = 128;
  constexpr int SharedBytes() const { return stages * (row_tile + output_tile) * kInputTile * 2; }
};
inline constexpr GemmShape kGemmFewRows = {8, 64, 3};
inline constexpr GemmShape kGemmManyRows = {64, 64, 3};
// Up to so many rows the first form is used. A matter of speed: the bits are the same.
inline constexpr int kFewRows = 16;

// --- attention ---------------------------------------------------------------------------------

struct AttentionShape {
  int head_size;
  int rows;  // packed query rows per CTA, 16 for each warp
  int tile;  // tokens
  int stages;
  constexpr int NumThreads() const { return rows * 2; }
  // K and V tiles, the rounded query, the running total in fp32.
  constexpr int SharedBytes() const {
    return stages * 2 * tile * head_size * 2 + rows * head_size * 2 + rows * head_size * 4;
  }
};
constexpr AttentionShape AttentionShapeOf(int head_size) {
  if (head_size <= 96) return {head_size, 64, 64, 2};
  if (head_size <= 128) return {head_size, 32, 64, 2};
  return {head_size, 16, 32, 2};
}
inline constexpr int kChunkTokens = 256;

// Decode: the heads that share K and V are columns of a matrix product, 8 or 16 of them.
struct DecodeShape {
  int head_size;
  int heads;
  int tile;  // tokens
  int stages;
  static constexpr int kThreads = 128;
  // 8 more elements a row of weights, so that rows lie in different banks.
  constexpr int WeightStride() const { return tile + 8; }
  // K and V tiles, the rounded weights, the largest score of each warp and head.
  constexpr int SharedBytes() const {
    return stages * 2 * tile * head_size * 2 + heads * WeightStride() * 2 + tile / 16 * heads * 4;
  }
};
constexpr DecodeShape DecodeShapeOf(int head_size, int heads) {
  if (head_size <= 96) return {head_size, heads, 64, 3};
  if (head_size <= 128) return {head_size, heads, 64, 2};
  return {head_size, heads, 32, 2};
}
inline constexpr int kDecodeHeads = 8, kDecodeWideHeads = 16;

// --- the table ---------------------------------------------------------------------------------

struct KernelInfo {
  KernelId id;
  const char* name;
  std::size_t argument_bytes;
  int num_threads;
  int ctas_per_sm;  // at least
  int shared_bytes;
  int stages = 0, tile = 0;  // of asynchronous copies: how many, of so many tokens, or of K
};

constexpr KernelInfo ElementKernel(KernelId id, const char* name, std::size_t argument_bytes) {
  return {id, name, argument_bytes, kElementThreads, 4, 0};
}
constexpr KernelInfo GemmKernel(KernelId id, const char* name, const GemmShape& shape) {
  return {id,
          name,
          sizeof(GemmArguments),
          GemmShape::kThreads,
          2,
          shape.SharedBytes(),
          shape.stages,
          GemmShape::kInputTile};
}
constexpr KernelInfo AttentionKernel(KernelId id, const char* name, int head_size) {
  const AttentionShape shape = AttentionShapeOf(head_size);
  return {id,
          name,
          sizeof(AttentionArguments),
          shape.NumThreads(),
          1,
          shape.SharedBytes(),
          shape.stages,
          shape.tile};
}

constexpr KernelInfo DecodeKernel(KernelId id, const char* name, int head_size, int heads) {
  const DecodeShape shape = DecodeShapeOf(head_size, heads);
  return {id,
          name,
          sizeof(DecodeArguments),
          DecodeShape::kThreads,
          1,
          shape.SharedBytes(),
          shape.stages,
          shape.tile};
}

// In the order of KernelId.
inline constexpr KernelInfo kKernels[kNumKernels] = {
    ElementKernel(KernelId::kEmbed, "Embed", sizeof(EmbedArguments)),
    ElementKernel(KernelId::kRmsNorm, "RmsNorm", sizeof(RmsNormArguments)),
    ElementKernel(KernelId::kAdd, "Add", sizeof(AddArguments)),
    ElementKernel(KernelId::kRoundRows, "RoundRows", sizeof(RoundRowsArguments)),
    ElementKernel(KernelId::kSiluMul, "SiluMul", sizeof(SiluMulArguments)),
    ElementKernel(KernelId::kRope, "Rope", sizeof(RopeArguments)),
    ElementKernel(KernelId::kWriteKv, "WriteKv", sizeof(RopeArguments)),
    ElementKernel(KernelId::kRopeAndWriteKv, "RopeAndWriteKv", sizeof(RopeArguments)),
    ElementKernel(KernelId::kZeroBlocks, "ZeroBlocks", sizeof(BlockArguments)),
    ElementKernel(KernelId::kCopyBlocks, "CopyBlocks", sizeof(BlockArguments)),
    GemmKernel(KernelId::kGemmFewRows, "GemmFewRows", kGemmFewRows),
    GemmKernel(KernelId::kGemmManyRows, "GemmManyRows", kGemmManyRows),
    AttentionKernel(KernelId::kAttention32, "Attention<32>", 32),
    AttentionKernel(KernelId::kAttention64, "Attention<64>", 64),
    AttentionKernel(KernelId::kAttention96, "Attention<96>", 96),
    AttentionKernel(KernelId::kAttention128, "Attention<128>", 128),
    AttentionKernel(KernelId::kAttention256, "Attention<256>", 256),
    DecodeKernel(KernelId::kDecode32, "Decode<32, 8>", 32, kDecodeHeads),
    DecodeKernel(KernelId::kDecode64, "Decode<64, 8>", 64, kDecodeHeads),
    DecodeKernel(KernelId::kDecode96, "Decode<96, 8>", 96, kDecodeHeads),
    DecodeKernel(KernelId::kDecode128, "Decode<128, 8>", 128, kDecodeHeads),
    DecodeKernel(KernelId::kDecode256, "Decode<256, 8>", 256, kDecodeHeads),
    DecodeKernel(KernelId::kDecodeWide32, "Decode<32, 16>", 32, kDecodeWideHeads),
    DecodeKernel(KernelId::kDecodeWide64, "Decode<64, 16>", 64, kDecodeWideHeads),
    DecodeKernel(KernelId::kDecodeWide96, "Decode<96, 16>", 96, kDecodeWideHeads),
    DecodeKernel(KernelId::kDecodeWide128, "Decode<128, 16>", 128, kDecodeWideHeads),
    DecodeKernel(KernelId::kDecodeWide256, "Decode<256, 16>", 256, kDecodeWideHeads),
    ElementKernel(KernelId::kMergeDecode, "MergeDecode", sizeof(MergeArguments)),
    {KernelId::kSample, "Sample", sizeof(SampleArguments), kElementThreads, 4, kSampleSharedBytes},
};

// Shared memory of a multiprocessor: sm_86, sm_89 and sm_120 have the least, then sm_80, then
// sm_90a and sm_100. A CTA may take all but 1 KB, which every resident CTA costs besides. One shape
// serves all three: more stages where there is more room would be a matter of speed, and of nothing
// else.
inline constexpr int kSharedClasses[] = {100 * 1024, 164 * 1024, 228 * 1024};
constexpr int CtasBySharedMemory(const KernelInfo& info, int class_bytes) {
  return class_bytes / (info.shared_bytes + 1024);
}
constexpr bool EveryKernelFits() {
  for (const KernelInfo& info : kKernels) {
    for (const int bytes : kSharedClasses) {
      if (CtasBySharedMemory(info, bytes) < info.ctas_per_sm) return false;
    }
  }
  return true;
}
static_assert(EveryKernelFits());

constexpr const KernelInfo& InfoOf(KernelId id) { return kKernels[static_cast<std::size_t>(id)]; }

}  // namespace pagoda::kernels::cuda
