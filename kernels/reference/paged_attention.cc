// A row's positions: | chunk 0: tile tile tile tile | chunk 1: tile ... | ... up to its own
// position. Both cuts lie at absolute positions, so that no batch, chunked prefill or cache hit can
// move a rounding.
#include "kernels/reference/paged_attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/exact_math.h"
#include "kernels/reference/kv_store.h"
#include "kernels/reference/row_ops.h"

namespace pagoda::kernels::reference {
namespace {

constexpr std::int64_t kChunkTokens = 256;
constexpr std::size_t kSumLanes = 16;

std::int64_t TileTokens(std::int32_t head_size) { return head_size > 128 ? 32 : 64; }

// Softmax over some positions, not yet divided: the largest score, the sum of weights, the weighted
// sum of V.
struct State {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  std::vector<float> out;  // [D]
};

// One query row and head.
struct Query {
  const AttentionParams* params = nullptr;
  const AttentionWork* work = nullptr;
  const float* q = nullptr;  // [D]
  std::int32_t kv_head = 0;
  std::int64_t position = 0;

  const KvView& kv() const { return *params->kv; }
  float Read(const KvPlane& plane, std::int64_t at, std::int32_t d) const {
    const std::int64_t block_size = kv().block_size;
    const std::int64_t block = work->block_table[static_cast<std::size_t>(at / block_size)];
    return ReadKv(kv(), plane, {params->layer, kv_head, block * block_size + at % block_size, d});
  }
};

std::vector<float> Scores(const Query& query, std::int64_t begin, std::int64_t end) {
  std::vector<float> scores;
  for (std::int64_t at = begin; at < end; ++at) {
    float dot = 0.0f;
    for (std::int32_t d = 0; d < query.kv().head_size; ++d) {
      dot = base::Fma(query.q[d], query.Read(query.kv().key, at, d), dot);
    }
    scores.push_back(query.params->scale * dot);
  }
  return scores;
}

// Positions [begin, end) of one chunk.
State AttendChunk(const Query& query, std::int64_t begin, std::int64_t end) {
  const std::int32_t head_size = query.kv().head_size;
  State state;
  state.out.assign(static_cast<std::size_t>(head_size), 0.0f);
  std::array<float, kSumLanes> lanes = {};
  for (std::int64_t tile = begin; tile < end; tile += TileTokens(head_size)) {
    const std::int64_t tile_end = std::min(tile + TileTokens(head_size), end);
    const std::vector<float> scores = Scores(query, tile, tile_end);
    const float max = std::max(state.max, *std::max_element(scores.begin(), scores.end()));
    if (tile != begin) {
      const float alpha = base::Exp(state.max - max);
      for (float& o : state.out) o *= alpha;
      for (float& lane : lanes) lane *= alpha;
    }
    state.max = max;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const float p = RoundToKv(query.kv().type, base::Exp(scores[j] - max));
      lanes[j % kSumLanes] += p;
      for (std::int32_t d = 0; d < head_size; ++d) {
        float& o = state.out[static_cast<std::size_t>(d)];
        o = base::Fma(p, query.Read(query.kv().value, tile + static_cast<std::int64_t>(j), d), o);
      }
    }
  }
  state.sum = TreeSum(lanes);
  return state;
}

void MergeInto(State& total, const State& chunk) {
  const float max = std::max(total.max, chunk.max);
  const float a = base::Exp(total.max - max);
  const float b = base::Exp(chunk.max - max);
  total.sum = base::Fma(chunk.sum, b, total.sum * a);
  for (std::size_t d = 0; d < total.out.size(); ++d) {
    total.out[d] = base::Fma(chunk.out[d], b, total.out[d] * a);
  }
  total.max = max;
}

void AttendRow(const Query& query, float* out) {
  const std::int64_t end = query.position + 1;
  State total = AttendChunk(query, 0, std::min(kChunkTokens, end));
  for (std::int64_t chunk = kChunkTokens; chunk < end; chunk += kChunkTokens) {
    MergeInto(total, AttendChunk(query, chunk, std::min(chunk + kChunkTokens, end)));
  }
  for (std::size_t d = 0; d < total.out.size(); ++d) out[d] = total.out[d] / total.sum;
}

}  // namespace

void PagedAttention(const AttentionParams& params) {
  const std::int32_t group = params.num_query_heads / params.kv->num_kv_heads;
  for (const AttentionWork& work : params.work) {
    for (std::int32_t t = 0; t < work.num_tokens; ++t) {
      const std::int64_t row = work.first_row + t;
      for (std::int32_t h = 0; h < params.num_query_heads; ++h) {
        const std::int64_t column = std::int64_t{h} * params.kv->head_size;
        AttendRow({&params, &work, params.query.Row(row) + column, h / group,
                   std::int64_t{work.first_position} + t},
                  params.out.Row(row) + column);
      }
    }
  }
}

}  // namespace pagoda::kernels::reference
