#include "kernels/check_shapes.h"

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::kernels {
namespace {

template <typename T>
void CheckView(const BasicMatrixView<T>& view) {
  PAGODA_CHECK(view.rows >= 0);
  PAGODA_CHECK(view.columns > 0);
  PAGODA_CHECK(view.stride >= view.columns);
  PAGODA_CHECK(view.rows == 0 || view.data != nullptr);
}

template <typename T, typename U>
void CheckSameShape(const BasicMatrixView<T>& a, const BasicMatrixView<U>& b) {
  CheckView(a);
  CheckView(b);
  PAGODA_CHECK(a.rows == b.rows);
  PAGODA_CHECK(a.columns == b.columns);
}

std::size_t Rows(const ConstMatrixView& view) { return static_cast<std::size_t>(view.rows); }

void CheckLayer(const KvView& kv, std::int32_t layer) {
  PAGODA_CHECK(kv.head_size > 0 && kv.head_size % 2 == 0);
  PAGODA_CHECK(kv.block_size > 0);
  PAGODA_CHECK(layer >= 0);
  PAGODA_CHECK(layer < kv.num_layers);
}

void CheckWork(const AttentionWork& work, const AttentionParams& params) {
  PAGODA_CHECK(work.first_row >= 0);
  PAGODA_CHECK(work.num_tokens >= 0);
  PAGODA_CHECK(work.first_position >= 0);
  PAGODA_CHECK(work.first_row + std::int64_t{work.num_tokens} <= params.query.rows);
  const std::int64_t context = work.first_position + std::int64_t{work.num_tokens};
  const auto needed = base::DivUp(context, std::int64_t{params.kv->block_size});
  PAGODA_CHECK(static_cast<std::int64_t>(work.block_table.size()) >= needed);
  for (std::int64_t b = 0; b < needed; ++b) {
    PAGODA_CHECK(work.block_table[static_cast<std::size_t>(b)] <
                 static_cast<std::uint32_t>(params.kv->num_blocks));
  }
}

}  // namespace

void CheckShapes(const EmbedParams& params) {
  PAGODA_CHECK(params.table != nullptr);
  const PackPlan& plan = params.table->plan;
  PAGODA_CHECK(plan.layout != PackLayout::kColumnPanels);
  PAGODA_CHECK(plan.parts.size() == 1);
  CheckView(params.out);
  PAGODA_CHECK(params.out.columns == plan.num_inputs);
  PAGODA_CHECK(Rows(params.out) == params.tokens.size());
  for (const base::TokenId token : params.tokens) PAGODA_CHECK(token < plan.num_outputs);
}

void CheckShapes(const RmsNormParams& params) {
  CheckSameShape(params.in, params.out);
  PAGODA_CHECK(static_cast<std::int64_t>(params.weight.size()) == params.in.columns);
}

void CheckShapes(const AddParams& params) {
  if (params.addend.rows == 1 && params.inout.rows != 1) {
    CheckView(params.addend);
    CheckView(params.inout);
    PAGODA_CHECK(params.addend.columns == params.inout.columns);
    return;
  }
  CheckSameShape(params.addend, params.inout);
}

void CheckShapes(const MatmulParams& params) {
  PAGODA_CHECK(params.weight != nullptr);
  CheckView(params.x);
  CheckView(params.out);
  PAGODA_CHECK(params.x.rows == params.out.rows);
  PAGODA_CHECK(params.x.columns == params.weight->plan.num_inputs);
  PAGODA_CHECK(params.out.columns == params.weight->plan.num_outputs);
  PAGODA_CHECK(params.row_adapters.empty() || params.row_adapters.size() == Rows(params.x));
  for (const base::AdapterId adapter : params.row_adapters) {
    PAGODA_CHECK_MSG(adapter == base::kBaseModel, "no backend has adapters yet");
  }
}

void CheckShapes(const RopeParams& params) {
  CheckView(params.query);
  CheckView(params.key);
  PAGODA_CHECK(params.head_size > 0);
  PAGODA_CHECK(params.rotary_size > 0 && params.rotary_size % 2 == 0);
  PAGODA_CHECK(params.rotary_size <= params.head_size);
  PAGODA_CHECK(params.query.columns % params.head_size == 0);
  PAGODA_CHECK(params.key.columns % params.head_size == 0);
  PAGODA_CHECK(params.query.rows == params.key.rows);
  PAGODA_CHECK(params.positions.size() == Rows(params.query));
  CheckSameShape(params.cos, params.sin);
  PAGODA_CHECK(params.cos.columns == params.rotary_size / 2);
  for (const std::int32_t position : params.positions) {
    PAGODA_CHECK(position >= 0);
    PAGODA_CHECK(position < params.cos.rows);
  }
}

void CheckShapes(const WriteKvParams& params) {
  PAGODA_CHECK(params.kv != nullptr);
  const KvView& kv = *params.kv;
  CheckLayer(kv, params.layer);
  CheckSameShape(params.key, params.value);
  PAGODA_CHECK(params.key.columns == std::int64_t{kv.num_kv_heads} * kv.head_size);
  PAGODA_CHECK(params.slots.size() == Rows(params.key));
  for (const std::int64_t slot : params.slots) {
    PAGODA_CHECK(slot >= -1);
    PAGODA_CHECK(slot < std::int64_t{kv.num_blocks} * kv.block_size);
  }
}

void CheckShapes(const AttentionParams& params) {
  PAGODA_CHECK(params.kv != nullptr);
  const KvView& kv = *params.kv;
  CheckLayer(kv, params.layer);
  CheckSameShape(params.query, params.out);
  PAGODA_CHECK(kv.num_kv_heads > 0);
  PAGODA_CHECK(params.num_query_heads > 0);
  PAGODA_CHECK(params.num_query_heads % kv.num_kv_heads == 0);
  PAGODA_CHECK(params.query.columns == std::int64_t{params.num_query_heads} * kv.head_size);
  for (const AttentionWork& work : params.work) CheckWork(work, params);
}

void CheckShapes(const SiluMulParams& params) {
  CheckView(params.gate_up);
  CheckView(params.out);
  PAGODA_CHECK(params.gate_up.rows == params.out.rows);
  PAGODA_CHECK(params.gate_up.columns == 2 * params.out.columns);
}

void CheckShapes(const SampleParams& params) {
  PAGODA_CHECK(params.rows.size() == params.outcomes.size());
  for (const SampleRow& row : params.rows) {
    PAGODA_CHECK(!row.logits.empty());
    // The sums of top-p stay below 2^64: 2^40 a token.
    PAGODA_CHECK(row.logits.size() <= std::size_t{1} << 23);
    PAGODA_CHECK(row.temperature >= 0.0f);
    PAGODA_CHECK(row.top_p > 0.0f && row.top_p <= 1.0f);
    PAGODA_CHECK(row.min_p >= 0.0f && row.min_p <= 1.0f);
  }
}

void CheckShapes(const ScoreParams& params) {
  PAGODA_CHECK(params.rows.size() == params.outcomes.size());
  for (const ScoreRow& row : params.rows) {
    // The sum of the weights stays below 2^64: 2^40 a token.
    PAGODA_CHECK(row.logits.size() <= std::size_t{1} << 23);
    PAGODA_CHECK(row.token < row.logits.size());
    PAGODA_CHECK(row.alternatives.size() <= row.logits.size() || !row.token_ids.empty());
    PAGODA_CHECK(row.token_ids.empty() || row.token_ids.size() == row.alternatives.size());
    for (const base::TokenId token : row.token_ids) PAGODA_CHECK(token < row.logits.size());
  }
}

void CheckShapes(const KvView& kv, std::span<const std::uint32_t> blocks) {
  for (const std::uint32_t block : blocks) {
    PAGODA_CHECK(block < static_cast<std::uint32_t>(kv.num_blocks));
  }
}

void CheckShapes(const KvView& kv, std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    PAGODA_CHECK(copy.source < static_cast<std::uint32_t>(kv.num_blocks));
    PAGODA_CHECK(copy.target < static_cast<std::uint32_t>(kv.num_blocks));
    PAGODA_CHECK(copy.source != copy.target);
    PAGODA_CHECK(copy.num_slots >= 0 && copy.num_slots <= kv.block_size);
  }
}

}  // namespace pagoda::kernels
