// One step:   hidden = embed(tokens)
//   each layer:  q, k, v = norm(hidden) Wqkv (+ bias);  rope(q, k);  KV pool <- k, v;  hidden +=
//   attention(q, pool) Wo
//                hidden += (silu(g) * u) Wdown   with g, u = norm(hidden) Wgate_up
//   logits = norm(hidden[rows]) Whead, for the rows that sample alone.
// K and V are written before attention reads, for all rows of the step, so a row may read what
// another sequence's row of the same step wrote.

#include "model/forward_pass.h"

#include <cmath>

#include "base/bits.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace pagoda::model {
namespace {

using kernels::MatrixView;
using kernels::Stream;

// A cache line of floats. In test builds rows lie a line further apart than they must, with NaNs
// between them.
constexpr std::int64_t kLineFloats = 16;
#if defined(PAGODA_TEST_CHECKS)
constexpr std::int64_t kSpareFloats = kLineFloats;
#else
constexpr std::int64_t kSpareFloats = 0;
#endif

// Gives out matrices of one memory; with no memory yet it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  MatrixView Take(std::int64_t rows, std::int64_t columns) {
    const std::int64_t stride = base::RoundUp(columns, kLineFloats) + kSpareFloats;
    float* const data = base_ == nullptr ? nullptr : base_ + used_;
    used_ += rows * stride;
    return {data, rows, columns, stride};
  }
  std::int64_t used_bytes() const { return used_ * static_cast<std::int64_t>(sizeof(float)); }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ForwardPass>> ForwardPass::Create(const Config& config,
                                                                 const Weights& weights,
                                                                 kernels::Ops& ops,
                                                                 const ForwardLimits& limits) {
  PAGODA_CHECK_MSG(ops.device().is_host(), "logits are read where they were computed");
  auto pass = std::make_unique<ForwardPass>(config, weights, ops, limits);
  PAGODA_RETURN_IF_ERROR(pass->Allocate());
  return pass;
}

ForwardPass::ForwardPass(const Config& config, const Weights& weights, kernels::Ops& ops,
                         const ForwardLimits& limits)
    : config_(config),
      weights_(weights),
      ops_(ops),
      limits_(limits),
      rope_(config, weights.rope_factors, limits.max_positions) {}

absl::Status ForwardPass::Allocate() {
  const std::int64_t rows = limits_.max_tokens;
  const auto carve = [&](Carver carver) {
    hidden_ = carver.Take(rows, config_.hidden_size);
    normed_ = carver.Take(rows, config_.hidden_size);
    qkv_ = carver.Take(rows, weights_.layers[0].qkv.plan.num_outputs);
    attention_ = carver.Take(rows, std::int64_t{config_.num_heads} * config_.head_size);
    gate_up_ = carver.Take(rows, 2 * std::int64_t{config_.feed_forward_size});
    feed_forward_ = carver.Take(rows, config_.feed_forward_size);
    gathered_ = carver.Take(limits_.max_logit_rows, config_.hidden_size);
    logits_ = carver.Take(limits_.max_logit_rows, config_.num_vocabulary_rows);
    return carver.used_bytes();
  };
  const std::int64_t bytes = carve(Carver(nullptr));
  PAGODA_ASSIGN_OR_RETURN(memory_, ops_.device().Allocate(bytes));
  carve(Carver(reinterpret_cast<float*>(memory_.data())));
  if (kSpareFloats > 0) ops_.device().Fill(memory_.data(), std::byte{0xff}, bytes, Stream{});
  positions_.resize(static_cast<std::size_t>(rows));
  slots_.resize(static_cast<std::size_t>(rows));
  work_.reserve(static_cast<std::size_t>(limits_.max_sequences));
  return absl::OkStatus();
}

absl::Status ForwardPass::Run(const ModelInput& input, const kernels::KvView& kv) {
  LayOutRows(input, kv);
  if (num_rows_ == 0) return absl::OkStatus();
  ops_.Embed(
      {.table = &weights_.embedding, .tokens = input.tokens, .out = hidden_.Rows(0, num_rows_)},
      Stream{});
  for (std::int32_t layer = 0; layer < config_.num_layers; ++layer) RunLayer(layer, kv);
  RunHead(input.logit_rows);
  return ops_.device().Await(ops_.device().Record(Stream{}));
}

void ForwardPass::LayOutRows(const ModelInput& input, const kernels::KvView& kv) {
  num_rows_ = static_cast<std::int64_t>(input.tokens.size());
  PAGODA_CHECK(num_rows_ <= limits_.max_tokens);
  PAGODA_CHECK(input.sequences.size() <= static_cast<std::size_t>(limits_.max_sequences));
  work_.clear();
  std::int64_t num_covered = 0;
  for (const SequenceInput& sequence : input.sequences) {
    PAGODA_CHECK(sequence.first_row == num_covered);
    LayOutSequence(sequence, kv);
    num_covered += sequence.num_tokens;
  }
  PAGODA_CHECK(num_covered == num_rows_);
}

void ForwardPass::LayOutSequence(const SequenceInput& sequence, const kernels::KvView& kv) {
  const std::int64_t context = sequence.first_position + std::int64_t{sequence.num_tokens};
  PAGODA_CHECK(sequence.num_tokens >= 1);
  PAGODA_CHECK(sequence.first_position >= 0);
  PAGODA_CHECK(context <= limits_.max_positions);
  PAGODA_CHECK(sequence.first_row + std::int64_t{sequence.num_tokens} <= num_rows_);
  PAGODA_CHECK(sequence.num_without_kv >= 0 && sequence.num_without_kv <= sequence.num_tokens);
  PAGODA_CHECK(sequence.block_tables.size() == 1);
  const std::span<const std::uint32_t> table = sequence.block_tables[0];
  const std::int64_t num_blocks = base::DivUp(context, std::int64_t{kv.block_size});
  PAGODA_CHECK(static_cast<std::int64_t>(table.size()) >= num_blocks);
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    const std::uint32_t block = table[static_cast<std::size_t>(i)];
    PAGODA_CHECK(block != base::kNullBlock.value());
    PAGODA_CHECK(block < static_cast<std::uint32_t>(kv.num_blocks));
  }
  for (std::int32_t i = 0; i < sequence.num_tokens; ++i) {
    const auto row = static_cast<std::size_t>(sequence.first_row) + static_cast<std::size_t>(i);
    const std::int32_t position = sequence.first_position + i;
    const std::int64_t block = table[static_cast<std::size_t>(position / kv.block_size)];
    positions_[row] = position;
    slots_[row] =
        i < sequence.num_without_kv ? -1 : block * kv.block_size + position % kv.block_size;
  }
  work_.push_back({.first_row = sequence.first_row,
                   .num_tokens = sequence.num_tokens,
                   .first_position = sequence.first_position,
                   .block_table = table});
}

void ForwardPass::RunLayer(std::int32_t layer, const kernels::KvView& kv) {
  RunAttention(layer, kv);
  RunFeedForward(layer);
}

void ForwardPass::RunAttention(std::int32_t layer, const kernels::KvView& kv) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const MatrixView hidden = hidden_.Rows(0, num_rows_);
  const MatrixView normed = normed_.Rows(0, num_rows_);
  const MatrixView qkv = qkv_.Rows(0, num_rows_);
  const std::int64_t query_size = std::int64_t{config_.num_heads} * config_.head_size;
  const std::int64_t key_size = std::int64_t{config_.num_kv_heads} * config_.head_size;
  const MatrixView query = qkv.Columns(0, query_size);
  const MatrixView key = qkv.Columns(query_size, key_size);
  const MatrixView value = qkv.Columns(query_size + key_size, key_size);
  ops_.NormMatmul({.norm = {.in = hidden,
                            .weight = weights.attention_norm,
                            .epsilon = config_.rms_epsilon,
                            .out = normed},
                   .matmul = {.x = normed, .weight = &weights.qkv, .out = qkv, .row_adapters = {}}},
                  Stream{});
  if (!weights.qkv_bias.empty()) {
    ops_.Add({.addend = {weights.qkv_bias.data(), 1, qkv.columns, qkv.columns}, .inout = qkv},
             Stream{});
  }
  const auto rows = static_cast<std::size_t>(num_rows_);
  ops_.RopeAndWriteKv({.rope = {.query = query,
                                .key = key,
                                .head_size = config_.head_size,
                                .rotary_size = config_.rotary_size,
                                .pairs = config_.rotary_pairs == Config::RotaryPairs::kHalves
                                             ? kernels::RopePairs::kHalves
                                             : kernels::RopePairs::kInterleaved,
                                .cos = rope_.cos(),
                                .sin = rope_.sin(),
                                .positions = std::span(positions_).first(rows)},
                       .write = {.key = key,
                                 .value = value,
                                 .kv = &kv,
                                 .layer = layer,
                                 .slots = std::span(slots_).first(rows)}},
                      Stream{});
  ops_.Attention({.query = query,
                  .out = attention_.Rows(0, num_rows_),
                  .kv = &kv,
                  .layer = layer,
                  .num_query_heads = config_.num_heads,
                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_size)),
                  .work = work_},
                 Stream{});
  ops_.Matmul({.x = attention_.Rows(0, num_rows_),
               .weight = &weights.attention_output,
               .out = hidden,
               .output = kernels::MatmulOutput::kAdd,
               .row_adapters = {}},
              Stream{});
  ops_.AllReduce(hidden, Stream{});
}

void ForwardPass::RunFeedForward(std::int32_t layer) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const MatrixView hidden = hidden_.Rows(0, num_rows_);
  const MatrixView normed = normed_.Rows(0, num_rows_);
  ops_.GateUp({.norm = kernels::RmsNormParams{.in = hidden,
                                              .weight = weights.feed_forward_norm,
                                              .epsilon = config_.rms_epsilon,
                                              .out = normed},
               .gate_up = {.x = normed,
                           .weight = &weights.gate_up,
                           .out = gate_up_.Rows(0, num_rows_),
                           .row_adapters = {}},
               .out = feed_forward_.Rows(0, num_rows_)},
              Stream{});
  ops_.Matmul({.x = feed_forward_.Rows(0, num_rows_),
               .weight = &weights.down,
               .out = hidden,
               .output = kernels::MatmulOutput::kAdd,
               .row_adapters = {}},
              Stream{});
  ops_.AllReduce(hidden, Stream{});
}

// The final norm gathers: each run of neighbouring rows goes through it to its place among the rows
// that sample.
void ForwardPass::RunHead(std::span<const std::int32_t> logit_rows) {
  const auto num_logit_rows = static_cast<std::int64_t>(logit_rows.size());
  if (num_logit_rows == 0) return;
  PAGODA_CHECK(num_logit_rows <= limits_.max_logit_rows);
  for (std::size_t begin = 0; begin < logit_rows.size();) {
    std::size_t end = begin + 1;
    while (end < logit_rows.size() && logit_rows[end] == logit_rows[end - 1] + 1) ++end;
    PAGODA_CHECK(logit_rows[begin] >= 0);
    PAGODA_CHECK(logit_rows[end - 1] < num_rows_);
    const auto count = static_cast<std::int64_t>(end - begin);
    ops_.RmsNorm({.in = hidden_.Rows(logit_rows[begin], count),
                  .weight = weights_.output_norm,
                  .epsilon = config_.rms_epsilon,
                  .out = gathered_.Rows(static_cast<std::int64_t>(begin), count)},
                 Stream{});
    begin = end;
  }
  ops_.Matmul({.x = gathered_.Rows(0, num_logit_rows),
               .weight = &weights_.lm_head,
               .out = logits_.Rows(0, num_logit_rows),
               .row_adapters = {}},
              Stream{});
}

std::span<float> ForwardPass::Logits(std::int32_t row) {
  PAGODA_CHECK(row >= 0 && row < limits_.max_logit_rows);
  return {logits_.Row(row), static_cast<std::size_t>(logits_.columns)};
}

}  // namespace pagoda::model
