#include <algorithm>
#include <cmath>

#include "tests/kernels/suite/kv_pool.h"

namespace pagoda::kernels {
namespace {

struct Shape {
  base::KvType type = base::KvType::kBf16;
  std::int32_t query_heads = 6;  // H
  std::int32_t kv_heads = 2;     // G
  std::int32_t head_size = 64;   // D
  std::int32_t block_size = 16;
  KeyOrder order = KeyOrder::kTokenMajor;
};

// One sequence with its K and V in a pool of scrambled blocks.
class Sequence {
 public:
  Sequence(const Shape& shape, std::int64_t length, unsigned seed, Ops& ops)
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
             .num_layers = 2,
             .gaps = true}),
        table_(ScrambledBlocks(pool_.shape().num_blocks, random_)),
        ops_(ops) {
    // Exactly the entries that may be read.
    table_.resize(static_cast<std::size_t>(base::DivUp(length, std::int64_t{shape.block_size})));
    const auto slots = SlotsOf(table_, shape.block_size, 0, length);
    ops.WriteKv({key_.view(), value_.view(), &pool_.view(), 1, slots}, Stream{});
    EXPECT_TRUE(ops.device().Await(ops.device().Record(Stream{})).ok());
  }

  // Rows first ... first + count - 1, cut into pieces of `piece`, the pieces of one call in reverse
  // order.
  Matrix Run(std::int64_t first, std::int64_t count, std::int64_t piece) {
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
    ops_.Attention(Params(query.view(), out.view(), work), Stream{});
    EXPECT_TRUE(ops_.device().Await(ops_.device().Record(Stream{})).ok());
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

  // Row `position` by the textbook, in double, from the K and V as they are stored.
  std::vector<double> Exact(std::int64_t position) const {
    std::vector<double> out;
    for (std::int32_t h = 0; h < shape_.query_heads; ++h) {
      const std::int64_t kv_column =
          std::int64_t{h / (shape_.query_heads / shape_.kv_heads)} * shape_.head_size;
      std::vector<double> weights;
      for (std::int64_t at = 0; at <= position; ++at) {
        double dot = 0;
        for (std::int32_t d = 0; d < shape_.head_size; ++d) {
          dot += double{query_.at(position, std::int64_t{h} * shape_.head_size + d)} *
                 Rounded(key_.at(at, kv_column + d));
        }
        weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(shape_.head_size))));
      }
      for (std::int32_t d = 0; d < shape_.head_size; ++d) {
        double sum = 0;
        double total = 0;
        for (std::int64_t at = 0; at <= position; ++at) {
          const double weight = weights[static_cast<std::size_t>(at)];
          sum += weight * Rounded(value_.at(at, kv_column + d));
          total += weight;
        }
        out.push_back(sum / total);
      }
    }
    return out;
  }

  KvPool& pool() { return pool_; }
  std::span<const std::uint32_t> table() const { return table_; }
  const Matrix& query() const { return query_; }
  Matrix& mutable_query() { return query_; }

 private:
  double Rounded(float x) const {
    return shape_.type == base::KvType::kF32 ? x : base::FloatFromBf16(base::Bf16FromFloat(x));
  }

  Shape shape_;
  std::mt19937 random_;
  Matrix query_, key_, value_;
  KvPool pool_;
  std::vector<std::uint32_t> table_;
  Ops& ops_;
};

TEST_P(KernelSuite, AttentionIsCloseToDoubleFromBothSides) {
  for (const base::KvType type : {base::KvType::kF32, base::KvType::kBf16}) {
    Sequence sequence({.type = type}, 300, 41, *ops_);
    double largest = 0;
    for (const std::int64_t position : {0, 1, 15, 63, 64, 255, 256, 299}) {
      const Matrix out = sequence.Run(position, 1, 1);
      const std::vector<double> exact = sequence.Exact(position);
      double top = 0;
      for (const double x : exact) top = std::max(top, std::abs(x));
      for (std::size_t c = 0; c < exact.size(); ++c) {
        const double error = std::abs(out.at(0, static_cast<std::int64_t>(c)) - exact[c]);
        largest = std::max(largest, error / top);
      }
    }
    const bool rounds = type == base::KvType::kBf16;
    EXPECT_LE(largest, rounds ? 4e-3 : 2e-6) << base::Name(type);
    EXPECT_GE(largest, rounds ? 1e-4 : 2e-8) << base::Name(type);
  }
}

TEST_P(KernelSuite, AttentionEqualsTheReferenceAtEveryEdgeOfBlockTileAndChunk) {
  const Shape shapes[] = {
      {.query_heads = 6, .kv_heads = 2, .head_size = 64, .block_size = 16},
      {.query_heads = 9, .kv_heads = 3, .head_size = 64, .order = KeyOrder::kDimPairMajor},
      {.type = base::KvType::kF32,
       .query_heads = 4,
       .kv_heads = 1,
       .head_size = 32,
       .block_size = 4,
       .order = KeyOrder::kDimPairMajor},
      {.type = base::KvType::kF32, .query_heads = 2, .kv_heads = 2, .head_size = 128},
      {.query_heads = 5, .kv_heads = 1, .head_size = 32, .block_size = 4},
      {.query_heads = 2,
       .kv_heads = 1,
       .head_size = 256,
       .block_size = 32,
       .order = KeyOrder::kDimPairMajor},
  };
  for (const Shape& shape : shapes) {
    Sequence found(shape, 530, 42, *ops_);
    Sequence wanted(shape, 530, 42, *reference_);
    for (const std::int64_t at :
         {0, 1, 3, 4, 15, 16, 17, 31, 63, 64, 65, 255, 256, 257, 511, 529}) {
      ExpectSameBits(found.Run(at, 1, 1), wanted.Run(at, 1, 1), "position " + std::to_string(at));
    }
  }
}

TEST_P(KernelSuite, PrefillEqualsDecodeAndAnyChunking) {
  for (const KeyOrder order : {KeyOrder::kTokenMajor, KeyOrder::kDimPairMajor}) {
    for (const base::KvType type : {base::KvType::kBf16, base::KvType::kF32}) {
      Sequence sequence({.type = type, .query_heads = 3, .kv_heads = 1, .order = order}, 280, 43,
                        *ops_);
      const Matrix whole = sequence.Run(0, 280, 280);
      for (const std::int64_t piece : {1, 7, 16, 64, 100}) {
        ExpectSameBits(sequence.Run(0, 280, piece), whole, "pieces of " + std::to_string(piece));
      }
      ExpectSameBits(sequence.Run(250, 30, 30), RowsOf(whole, 250, 30), "the last rows alone");
    }
  }
}

// The same numbers under another order, another type's layout or other block numbers are the same
// numbers.
TEST_P(KernelSuite, KeyOrderAndBlockNumbersDoNotChangeBits) {
  Sequence plain({.block_size = 16, .order = KeyOrder::kTokenMajor}, 150, 44, *ops_);
  Sequence pairs({.block_size = 16, .order = KeyOrder::kDimPairMajor}, 150, 44, *ops_);
  Sequence small({.block_size = 4, .order = KeyOrder::kTokenMajor}, 150, 44, *ops_);
  const Matrix wanted = plain.Run(0, 150, 150);
  ExpectSameBits(pairs.Run(0, 150, 150), wanted, "pair-major");
  ExpectSameBits(small.Run(0, 150, 150), wanted, "blocks of 4");
}

TEST_P(KernelSuite, SequencesOfOneCallDoNotMeet) {
  const Shape shape = {.query_heads = 4, .kv_heads = 2};
  Sequence sequence(shape, 100, 45, *ops_);
  const Matrix whole = sequence.Run(0, 100, 100);
  // A decode row, a prefill piece and an empty item in one call, rows apart.
  const std::vector<AttentionWork> work = {
      {.first_row = 12, .num_tokens = 1, .first_position = 99, .block_table = sequence.table()},
      {.first_row = 3, .num_tokens = 0, .first_position = 0, .block_table = {}},
      {.first_row = 2, .num_tokens = 9, .first_position = 40, .block_table = sequence.table()}};
  Matrix query(14, sequence.query().columns);
  Matrix out(14, sequence.query().columns);
  for (std::int64_t c = 0; c < query.columns; ++c) {
    query.at(12, c) = sequence.query().at(99, c);
    for (std::int64_t t = 0; t < 9; ++t) query.at(2 + t, c) = sequence.query().at(40 + t, c);
  }
  ops_->Attention(sequence.Params(query.view(), out.view(), work), stream_);
  Finish();
  ExpectSameBits(RowsOf(out, 12, 1), RowsOf(whole, 99, 1), "decode");
  ExpectSameBits(RowsOf(out, 2, 9), RowsOf(whole, 40, 9), "prefill");
  for (const std::int64_t unowned : {0, 1, 11, 13}) {
    for (std::int64_t c = 0; c < out.columns; ++c) ASSERT_TRUE(std::isnan(out.at(unowned, c)));
  }
}

// What a caller must see when KV has gone bad: not a plausible number.
TEST_P(KernelSuite, ANanInTheContextReachesTheRowsThatSeeItOnly) {
  Sequence sequence({.type = base::KvType::kF32, .query_heads = 2, .kv_heads = 1}, 40, 46, *ops_);
  Matrix bad(1, 64);
  for (std::int64_t d = 0; d < 64; ++d) bad.at(0, d) = d == 5 ? kNan : 0.0f;
  const auto slots = SlotsOf(sequence.table(), 16, 20, 1);
  ops_->WriteKv({bad.view(), bad.view(), &sequence.pool().view(), 1, slots}, stream_);
  Finish();
  const Matrix out = sequence.Run(0, 40, 40);
  for (std::int64_t t = 0; t < 40; ++t) {
    for (std::int64_t c = 0; c < out.columns; ++c) EXPECT_EQ(std::isnan(out.at(t, c)), t >= 20);
  }
}

TEST_P(KernelSuite, LargeScoresDoNotOverflow) {
  Sequence sequence({.type = base::KvType::kF32}, 80, 47, *ops_);
  Sequence plain({.type = base::KvType::kF32}, 80, 47, *reference_);
  for (float& q : sequence.mutable_query().data) q *= 1e4f;
  for (float& q : plain.mutable_query().data) q *= 1e4f;
  const Matrix out = sequence.Run(0, 80, 80);
  for (std::int64_t t = 0; t < 80; ++t) {
    for (std::int64_t c = 0; c < out.columns; ++c) ASSERT_TRUE(std::isfinite(out.at(t, c)));
  }
  ExpectSameBits(out, plain.Run(0, 80, 80), "large scores");
}

}  // namespace
}  // namespace pagoda::kernels
