#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_view.h"
#include "kernels/tensor_view.h"

// The inner kernels of the CPU backend: what one thread does in one task. Each instruction class
// provides one table of them (kernels/cpu/simd/, compiled once per class); all tables give the same
// bits. Plain data and pointers, any thread; a kernel writes only what its job names and allocates
// nothing.
namespace pagoda::kernels::cpu {

// Rows of int8 activations: bytes [M, K]; per row and block of 32 the scale, the sum of the bytes,
// their product, and the sum of the first 16 bytes.
struct Int8Rows {
  std::int8_t* bytes = nullptr;
  float* scales = nullptr;
  std::int32_t* sums = nullptr;
  float* scaled_sums = nullptr;
  std::int32_t* first_sums = nullptr;
  std::int64_t num_inputs = 0;  // K

  Int8Rows From(std::int64_t row) const {
    const std::int64_t blocks = row * (num_inputs / kQuantBlock);
    return {bytes + row * num_inputs, scales + blocks,     sums + blocks,
            scaled_sums + blocks,     first_sums + blocks, num_inputs};
  }
};

struct RowNorm {
  const float* weight = nullptr;  // [K]
  float epsilon = 0.0f;
};

// out = in * w^T for rows of activations and the outputs of one panel.
struct PanelJob {
  ElementType format = ElementType::kF32;
  const std::byte* panel = nullptr;
  std::int64_t num_inputs = 0;  // K
  // The activations: one of the two.
  Int8Rows int8_rows;
  ConstMatrixView float_rows;
  std::int64_t num_rows = 0;  // M
  float* out = nullptr;
  std::int64_t out_stride = 0;
  int num_columns = 32;  // those of the panel that exist
  bool add = false;      // out += product
};

// Rotation in place of the heads of one row.
struct RopeJob {
  float* heads = nullptr;
  std::int64_t num_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t rotary_size = 0;
  bool interleaved = false;
  const float* cos = nullptr;  // of the row's position
  const float* sin = nullptr;
};

// K or V of one head and token into its slot.
struct StoreKvJob {
  const float* source = nullptr;  // [D]
  std::byte* target = nullptr;
  std::int64_t pair_stride = 0;
  std::int64_t head_size = 0;
  base::KvType type = base::KvType::kBf16;
};

// Query rows of one work item and one KV head: `group_size` heads of each of num_tokens tokens.
struct AttentionJob {
  const KvView* kv = nullptr;
  const std::uint32_t* block_table = nullptr;
  std::int64_t layer = 0;
  std::int64_t kv_head = 0;
  const float* query = nullptr;  // head 0 of the group of the first token
  std::int64_t query_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  int num_tokens = 0;  // <= kMaxAttentionTokens
  int group_size = 0;  // num_tokens * group_size <= kMaxAttentionRows, or num_tokens is 1
  std::int64_t first_position = 0;
  float scale = 0.0f;
  // Chunks [first_chunk, last_chunk] of the context. All of them: the result is normalised and
  // written to `out`. Else the one chunk's state goes to `partial`, [rows][head_size + 2]: o, l, m.
  std::int64_t first_chunk = 0;
  std::int64_t last_chunk = 0;
  float* partial = nullptr;
  float* scratch = nullptr;  // AttentionScratchFloats
};

// Merges the partial states of one row, chunks ascending, `stride` floats apart.
struct MergeJob {
  const float* partial = nullptr;
  std::int64_t stride = 0;
  std::int64_t num_chunks = 0;
  std::int64_t head_size = 0;
  float* out = nullptr;
};

inline constexpr int kAttentionChunk = 256;
inline constexpr int kMaxAttentionRows = 48;
inline constexpr int kMaxHeadSize = 256;

struct KernelTable {
  int num_lanes = 0;
  void (*multiply_int8)(const PanelJob& job) = nullptr;
  void (*multiply_float)(const PanelJob& job) = nullptr;
  void (*quantize_row)(const float* in, const Int8Rows& out) = nullptr;
  void (*norm_row)(const float* in, std::int64_t num_inputs, const RowNorm& norm,
                   float* out) = nullptr;
  void (*add_row)(const float* addend, std::int64_t count, float* inout) = nullptr;
  void (*silu_mul_row)(const float* gate, const float* up, std::int64_t count,
                       float* out) = nullptr;
  void (*rotate)(const RopeJob& job) = nullptr;
  void (*store_kv)(const StoreKvJob& job) = nullptr;
  void (*attend)(const AttentionJob& job) = nullptr;
  void (*merge)(const MergeJob& job) = nullptr;
  void (*exp)(const float* in, std::int64_t count, float* out) = nullptr;  // base::Exp, for tests
};

// Floats of AttentionJob::scratch.
constexpr std::int64_t AttentionScratchFloats(std::int64_t num_rows, std::int64_t head_size) {
  constexpr std::int64_t kTile = 64;
  return 2 * kTile * head_size + num_rows * (2 * head_size + 2 * 18) + 8 * kTile;
}

}  // namespace pagoda::kernels::cpu
