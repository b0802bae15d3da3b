#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/suite/kv_pool.h"

namespace pagoda::kernels {

struct Shape {
  std::int32_t query_heads = 6;  // H
  std::int32_t kv_heads = 2;     // G
  std::int32_t head_size = 64;   // D
  std::int32_t block_size = 16;
  base::KvType type = base::KvType::kBf16;
  KeyOrder order = KeyOrder::kTokenMajor;
  std::int32_t gap_bytes = 48;
};

// Positions at which a context ends just before, at and just after what kernels count by: a block,
// a tile, a chunk; the first and the last.
inline std::set<std::int64_t> EdgePositions(std::int32_t block_size, std::int64_t length) {
  std::set<std::int64_t> positions = {0, length - 1};
  for (const std::int64_t whole : {1, block_size, 64, 256, 512}) {
    for (const std::int64_t position : {whole - 2, whole - 1, whole}) {
      if (position >= 0 && position < length) positions.insert(position);
    }
  }
  return positions;
}

// One sequence with its K and V in a pool of scrambled blocks, NaN in every other byte.
class Sequence {
 public:
  Sequence(const Shape& shape, std::int64_t length, unsigned seed)
      : shape_(shape),
        random_(seed),
        query_(RandomMatrix(length, std::int64_t{shape.query_heads} * shape.head_size, random_)),
        key_(RandomMatrix(length, std::int64_t{shape.kv_heads} * shape.head_size, random_)),
        value_(RandomMatrix(length, std::int64_t{shape.kv_heads} * shape.head_size, random_)),
        pool_(
            {.type = shape.type,
             .order = shape.order,
             .num_heads = shape.kv_heads,
             .head_size = shape.head_size,
             .block_size = shape.block_size,
             .num_blocks =
                 static_cast<std::int32_t>(base::DivUp(length, std::int64_t{shape.block_size})) + 2,
             .gaps = true,
             .gap_bytes = shape.gap_bytes}),
        table_(ScrambledBlocks(pool_.shape().num_blocks, random_)) {
    // Exactly the entries that may be read.
    table_.resize(static_cast<std::size_t>(base::DivUp(length, std::int64_t{shape.block_size})));
    const auto slots = SlotsOf(table_, shape.block_size, 0, length);
    MakeReferenceOps()->WriteKv({key_.view(), value_.view(), &pool_.view(), 1, slots}, {});
  }

  // Rows first ... first + count - 1, cut into pieces of `piece`, the pieces of one call in reverse
  // order.
  Matrix Run(Ops& ops, std::int64_t first, std::int64_t count, std::int64_t piece) {
    Matrix out(count, query_.columns);
    const Matrix query = RowsOf(query_, first, count);
    std::vector<AttentionWork> work;
    for (std::int64_t at = 0; at < count; at += piece) {
      work.push_back({.first_row = static_cast<std::int32_t>(at),
                      .num_tokens = static_cast<std::int32_t>(std::min(piece, count - at)),
                      .first_position = static_cast<std::int32_t>(first + at),
                      .block_table = table_});
    }
    std::reverse(work.begin(), work.end());
    ops.Attention(Params(query.view(), out.view(), work), {});
    const absl::Status done = ops.device().Await(ops.device().Record({}));
    EXPECT_TRUE(done.ok()) << done;
    return out;
  }

  AttentionParams Params(ConstMatrixView query, MatrixView out,
                         std::span<const AttentionWork> work) const {
    return {.query = query,
            .out = out,
            .kv = &pool_.view(),
            .layer = 1,
            .num_query_heads = shape_.query_heads,
            .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_size)),
            .work = work};
  }

  // All heads of row `position` by the textbook, in double, from what is stored and the query as it
  // is taken.
  std::vector<double> Exact(std::int64_t position, bool rounds_query) const {
    std::vector<double> out;
    for (std::int32_t h = 0; h < shape_.query_heads; ++h) {
      const std::int64_t column =
          std::int64_t{h / (shape_.query_heads / shape_.kv_heads)} * shape_.head_size;
      std::vector<double> scores;
      for (std::int64_t at = 0; at <= position; ++at) {
        double dot = 0;
        for (std::int32_t d = 0; d < shape_.head_size; ++d) {
          const float q = query_.at(position, std::int64_t{h} * shape_.head_size + d);
          dot += double{rounds_query ? RoundedToBf16(q) : q} * Stored(key_.at(at, column + d));
        }
        scores.push_back(dot / std::sqrt(static_cast<double>(shape_.head_size)));
      }
      const double top = *std::max_element(scores.begin(), scores.end());
      for (std::int32_t d = 0; d < shape_.head_size; ++d) {
        double sum = 0, total = 0;
        for (std::int64_t at = 0; at <= position; ++at) {
          const double weight = std::exp(scores[static_cast<std::size_t>(at)] - top);
          sum += weight * Stored(value_.at(at, column + d));
          total += weight;
        }
        out.push_back(sum / total);
      }
    }
    return out;
  }

  KvPool& pool() { return pool_; }
  std::span<const std::uint32_t> table() const { return table_; }
  Matrix& query() { return query_; }

 private:
  float Stored(float x) const { return shape_.type == base::KvType::kF32 ? x : RoundedToBf16(x); }

  Shape shape_;
  std::mt19937 random_;
  Matrix query_, key_, value_;
  KvPool pool_;
  std::vector<std::uint32_t> table_;
};

}  // namespace pagoda::kernels
