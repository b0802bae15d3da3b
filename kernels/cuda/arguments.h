#pragma once

#include <cstdint>

// What kernels are launched with: plain data, the same on host and device. Pointers are to device
// memory; strides of matrices are in elements, of the KV pool in bytes. Letters as in
// kernels/tensor_view.h. Standard library only.
namespace pagoda::kernels::cuda {

struct FloatRows {
  float* data = nullptr;
  std::int64_t stride = 0;
};
struct ConstFloatRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
};
struct Bf16Rows {
  std::uint16_t* data = nullptr;
  std::int64_t stride = 0;  // a multiple of 8 where a matrix product reads
};

// out[t, :] = table[tokens[t], :]. Grid: T, pieces of the columns.
struct EmbedArguments {
  const std::uint16_t* table = nullptr;   // [vocabulary, K]
  const std::uint32_t* tokens = nullptr;  // [T]
  FloatRows out;
  std::int32_t columns = 0;  // K
};

// Grid: DivUp(T, kNormRowsPerCta).
struct RmsNormArguments {
  ConstFloatRows in;
  const float* weight = nullptr;  // [K]
  FloatRows out;                  // or none
  Bf16Rows rounded;               // or none
  std::int32_t rows = 0, columns = 0;
  float epsilon = 0.0f;
};

// inout += addend. Grid: T, pieces of the columns.
struct AddArguments {
  ConstFloatRows addend;  // stride 0: one row for all
  FloatRows inout;
  std::int32_t columns = 0;
};

// out = in, rounded to bf16. Grid: T, pieces of the columns.
struct RoundRowsArguments {
  ConstFloatRows in;
  Bf16Rows out;
  std::int32_t columns = 0;
};

// out = silu(gate) * up. Grid: T, pieces of the columns.
struct SiluMulArguments {
  ConstFloatRows gate_up;  // [T, 2 F]
  FloatRows out;           // [T, F]
  std::int32_t columns = 0;
};

// K, or V, of one layer.
struct KvPlaneArguments {
  unsigned char* base = nullptr;
  std::int64_t block_stride = 0, layer_stride = 0, head_stride = 0, token_stride = 0;
};
struct KvArguments {
  KvPlaneArguments key, value;
  std::int32_t block_shift = 0;  // log2 of the block size
};

// Grid: T, then H + G heads to turn and, when writing, G more to store.
struct RopeArguments {
  FloatRows query, key;
  ConstFloatRows value;
  ConstFloatRows cos, sin;                  // [positions, rotary_size / 2]
  const std::int32_t* positions = nullptr;  // [T]
  const std::int64_t* slots = nullptr;      // [T]; negative: not stored
  KvArguments kv;
  std::int32_t num_query_heads = 0, num_kv_heads = 0;
  std::int32_t head_size = 0, rotary_size = 0;
  std::int32_t layer = 0;
  bool interleaved = false;
};

struct BlockCopyArguments {
  std::uint32_t source = 0, target = 0;
  std::int32_t num_slots = 0;
};

// Grid: blocks or copies, layers, 2 (K and V).
struct BlockArguments {
  KvArguments kv;
  const std::uint32_t* blocks = nullptr;       // to zero
  const BlockCopyArguments* copies = nullptr;  // or to copy
  std::int32_t num_kv_heads = 0, head_bytes = 0;
};

// out[M, N] = x[M, K] w[N, K]^T, or += it. K is a multiple of 32, rows of x and w are aligned
// to 16.
struct GemmArguments {
  const std::uint16_t* x = nullptr;
  const std::uint16_t* w = nullptr;
  FloatRows out;
  std::int64_t x_stride = 0;
  std::int32_t rows = 0, outputs = 0, inputs = 0;  // M, N, K
  bool adds = false;
};

// Part of one sequence, as kernels::AttentionWork.
struct AttentionItem {
  std::int32_t first_row = 0, num_tokens = 0, first_position = 0;
  std::int32_t first_table_entry = 0;  // of its blocks in the table of all
};

// What one CTA works on: packed rows first_packed_row ... of an item. Packed row r is token r /
// group and query head r % group of the KV head, so K and V are read once for all heads that share
// them.
struct AttentionTile {
  std::int32_t item = 0;
  std::int32_t first_packed_row = 0;
};

// Grid: tiles, G.
struct AttentionArguments {
  ConstFloatRows query;  // [T, H D]
  FloatRows out;         // [T, H D]
  KvArguments kv;
  const AttentionTile* tiles = nullptr;
  const AttentionItem* items = nullptr;
  const std::uint32_t* block_table = nullptr;
  std::int32_t layer = 0;
  std::int32_t group = 0;  // H / G
  float scale = 0.0f;
};

// One chunk of one sequence's context, for a query row of its own.
struct DecodeSlice {
  std::int32_t row = 0;                // of query
  std::int32_t first_table_entry = 0;  // of the sequence, in the table of all
  std::int32_t first = 0, end = 0;     // positions; at most kChunkTokens
};

// What one CTA works on, one after another: fixed by the host before the launch.
struct DecodeShare {
  std::int32_t first_slice = 0, num_slices = 0;
};

// Grid: shares, G. Slice s leaves its sums at partial_out[s, H, D] and partial_sums[s, H, 2]
// (largest score, sum of weights).
struct DecodeArguments {
  ConstFloatRows query;  // [T, H D]
  KvArguments kv;
  const DecodeShare* shares = nullptr;
  const DecodeSlice* slices = nullptr;
  const std::uint32_t* block_table = nullptr;
  float* partial_out = nullptr;
  float* partial_sums = nullptr;
  std::int32_t layer = 0;
  std::int32_t group = 0;  // H / G, at most the heads that the kernel has columns for
  std::int32_t num_query_heads = 0;
  float scale = 0.0f;
};

// The slices of one row, in order.
struct DecodeRow {
  std::int32_t row = 0;  // of out
  std::int32_t first_slice = 0, num_slices = 0;
};

// One draw, as kernels::SampleRow.
struct SampleRowArguments {
  const float* logits = nullptr;  // [num_tokens], at least one
  float* weights = nullptr;       // [num_tokens], scratch
  std::uint64_t seed = 0;
  std::int32_t num_tokens = 0;  // at most 2^23
  float temperature = 1.0f, top_p = 1.0f, min_p = 0.0f;
  std::int32_t top_k = 0;
  std::uint32_t position = 0, choice = 0;
};
struct SampleResult {
  std::uint32_t token = 0;
  std::uint32_t finite = 0;  // 0: no token
};
// Grid: rows.
struct SampleArguments {
  const SampleRowArguments* rows = nullptr;
  SampleResult* results = nullptr;
};

// Grid: rows, H.
struct MergeArguments {
  FloatRows out;  // [T, H D]
  const DecodeRow* rows = nullptr;
  const float* partial_out = nullptr;
  const float* partial_sums = nullptr;
  std::int32_t num_query_heads = 0, head_size = 0;
};

}  // namespace pagoda::kernels::cuda
