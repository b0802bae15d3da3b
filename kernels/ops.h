#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/token_score.h"
#include "kernels/capabilities.h"
#include "kernels/device.h"
#include "kernels/kernels_pack.h"
#include "kernels/kv_view.h"
#include "kernels/tensor_view.h"

// The operations of a forward pass. The bits that each must give are the contract of
// kernels/README.md: they never depend on what else is in the call. Shapes stand in the letters of
// tensor_view.h.
namespace pagoda::kernels {

// out[t, :] = table[tokens[t], :], widened exactly to fp32.
struct EmbedParams {
  const PackedWeight* table = nullptr;    // role kEmbedding: [vocabulary, K]
  std::span<const base::TokenId> tokens;  // [T], each below the vocabulary
  MatrixView out;                         // [T, K]
};

// out = in / sqrt(mean(in^2) + epsilon) * weight, row by row. out may be in.
struct RmsNormParams {
  ConstMatrixView in;             // [T, K]
  std::span<const float> weight;  // [K]
  float epsilon = 1e-5f;
  MatrixView out;  // [T, K]
};

// inout += addend: one fp32 addition each.
struct AddParams {
  ConstMatrixView addend;  // [T, K], or [1, K]: a bias, added to every row
  MatrixView inout;        // [T, K]
};

enum class MatmulOutput : std::uint8_t {
  kStore,  // out = x w^T
  kAdd,    // out = out + x w^T: one fp32 addition of the finished product, for residuals
};

struct MatmulParams {
  ConstMatrixView x;                     // [M, K], M >= 0
  const PackedWeight* weight = nullptr;  // w [N, K] and the activation type
  MatrixView out;                        // [M, N]; does not overlap x
  MatmulOutput output = MatmulOutput::kStore;
  // [M], or empty: the base model in every row. No backend has adapters yet.
  std::span<const base::AdapterId> row_adapters;
};

enum class RopePairs : std::uint8_t {
  kInterleaved,  // dims (2i, 2i + 1): the order of GGUF's llama weights
  kHalves,       // dims (i, i + rotary_size / 2)
};

// Rotates every head of Q and K in place. Pair i of row t turns by the angle whose cosine and sine
// are cos[position, i] and sin[position, i]; dims from rotary_size on stay.
struct RopeParams {
  MatrixView query;              // [T, H * D]
  MatrixView key;                // [T, G * D]
  std::int32_t head_size = 0;    // D
  std::int32_t rotary_size = 0;  // even, <= D
  RopePairs pairs = RopePairs::kInterleaved;
  ConstMatrixView cos;                      // [positions, rotary_size / 2]
  ConstMatrixView sin;                      // [positions, rotary_size / 2]
  std::span<const std::int32_t> positions;  // [T]
};

// Rounds K and V to the KV type and stores them.
struct WriteKvParams {
  ConstMatrixView key;    // [T, G * D]
  ConstMatrixView value;  // [T, G * D]
  const KvView* kv = nullptr;
  std::int32_t layer = 0;
  std::span<const std::int64_t>
      slots;  // [T], block * block_size + token; -1: not written. All different.
};

// Part of one sequence: tokens first_position ... first_position + num_tokens - 1, their K and V
// already written.
struct AttentionWork {
  std::int32_t first_row = 0;  // of query and out
  std::int32_t num_tokens = 0;
  std::int32_t first_position = 0;
  // Block of each block_size positions; entries from first_position + num_tokens on are never read.
  std::span<const std::uint32_t> block_table;
};

// Causal attention over the paged KV: row t at position p sees positions 0 ... p.
struct AttentionParams {
  ConstMatrixView query;  // [T, H * D]
  MatrixView out;  // [T, H * D]; does not overlap query. Rows of no work item are not written.
  const KvView* kv = nullptr;
  std::int32_t layer = 0;
  std::int32_t num_query_heads = 0;  // H, a multiple of G; query head h reads KV head h / (H / G)
  float scale = 1.0f;                // of q k^T
  std::span<const AttentionWork> work;
};

// out = silu(gate) * up.
struct SiluMulParams {
  ConstMatrixView gate_up;  // [T, 2 F]: gate, then up
  MatrixView out;           // [T, F]; does not overlap gate_up
};

// Copies the first num_slots tokens of K and V in all layers. The other slots of the target are not
// touched.
struct BlockCopy {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  std::int32_t num_slots = 0;
};

// One draw. Masks, bias and penalties were applied to the logits before; a masked token has
// -infinity.
struct SampleRow {
  std::span<const float> logits;  // [vocabulary], not changed
  float temperature = 1.0f;       // >= 0; 0: greedy, which ignores the rest
  float top_p = 1.0f;             // (0, 1]
  std::int32_t top_k = 0;         // <= 0: off
  float min_p = 0.0f;             // [0, 1]
  std::uint64_t seed = 0;
  std::uint32_t position = 0;  // of the token drawn
  std::uint32_t choice = 0;
};

struct SampleOutcome {
  base::TokenId token = 0;
  bool finite =
      true;  // false: a NaN or +infinity in the row, or nothing but -infinity; token is then 0
};

struct SampleParams {
  std::span<const SampleRow> rows;
  std::span<SampleOutcome> outcomes;  // as many as rows
};

// The log-probabilities of one row: of `token`, and of the likeliest tokens or of those named.
struct ScoreRow {
  std::span<const float> logits;  // [vocabulary], the model's own; not changed
  base::TokenId token = 0;
  std::span<const base::TokenId> token_ids;    // empty: the likeliest
  std::span<base::TokenLogprob> alternatives;  // out: as many as token_ids, if there are any
};

struct ScoreOutcome {
  float logprob = 0.0f;    // of ScoreRow::token
  std::uint32_t rank = 0;  // 1: the likeliest; of equal ones the lower id comes first
  bool finite = true;      // false as in SampleOutcome: nothing else of the row holds
};

struct ScoreParams {
  std::span<const ScoreRow> rows;
  std::span<ScoreOutcome> outcomes;  // as many as rows
};

struct NormMatmulParams {
  RmsNormParams norm;   // norm.out is scratch: unspecified afterwards
  MatmulParams matmul;  // matmul.x is norm.out
};

struct GateUpParams {
  std::optional<RmsNormParams> norm;  // as in NormMatmulParams
  MatmulParams
      gate_up;  // weight of role kGateUp; gate_up.out [T, 2 F] is scratch: unspecified afterwards
  MatrixView out;  // [T, F]
};

struct RopeAndWriteKvParams {
  RopeParams rope;      // rope.key is scratch: unspecified afterwards
  WriteKvParams write;  // write.key is rope.key
};

// A backend. Every call enqueues; what it writes may be read, and what it reads may be changed or
// freed, only after an event recorded later has been awaited. Everything that parameters point to
// (views, spans, weights, KvView) lives until then. Calls of one stream take effect in order. Wrong
// shapes are our own bugs and abort. Owner: model. Thread: the engine's. Composite ops equal their
// default bodies bit for bit.
class Ops {
 public:
  virtual ~Ops() = default;

  virtual const Capabilities& capabilities() const = 0;
  virtual Device& device() = 0;

  virtual void Embed(const EmbedParams& params, Stream stream) = 0;
  virtual void RmsNorm(const RmsNormParams& params, Stream stream) = 0;
  virtual void Add(const AddParams& params, Stream stream) = 0;
  virtual void Matmul(const MatmulParams& params, Stream stream) = 0;
  virtual void Rope(const RopeParams& params, Stream stream) = 0;
  virtual void WriteKv(const WriteKvParams& params, Stream stream) = 0;
  virtual void Attention(const AttentionParams& params, Stream stream) = 0;
  virtual void SiluMul(const SiluMulParams& params, Stream stream) = 0;
  virtual void Sample(const SampleParams& params, Stream stream) = 0;
  virtual void Score(const ScoreParams& params, Stream stream) = 0;
  virtual void ZeroBlocks(const KvView& kv, std::span<const std::uint32_t> blocks,
                          Stream stream) = 0;
  // In order; a copy may read what an earlier one wrote.
  virtual void CopyBlocks(const KvView& kv, std::span<const BlockCopy> copies, Stream stream) = 0;

  virtual void NormMatmul(const NormMatmulParams& params, Stream stream);
  virtual void GateUp(const GateUpParams& params, Stream stream);
  virtual void RopeAndWriteKv(const RopeAndWriteKvParams& params, Stream stream);

  // Sums over the shards of a tensor-parallel group. One shard: nothing to do.
  virtual void AllReduce(MatrixView /*inout*/, Stream /*stream*/) {}
};

}  // namespace pagoda::kernels
