#include "tests/kernels/suite/paged_sequence.h"

namespace pagoda::kernels {
namespace {

class AttentionSuite : public KernelSuite {
 protected:
  Sequence Make(Shape shape, std::int64_t length, unsigned seed) const {
    shape.gap_bytes = GetParam().gap_bytes;
    return Sequence(shape, length, seed);
  }
  const std::vector<base::KvType>& types() const { return ops_->capabilities().kv_types; }
  const std::vector<KeyOrder>& orders() const { return GetParam().key_orders; }
};

struct Errors {
  double of_row = 0;      // length of the difference over the length of what it should be
  double of_element = 0;  // over the largest that there should be

  void Take(const Errors& other) {
    of_row = std::max(of_row, other.of_row);
    of_element = std::max(of_element, other.of_element);
  }
};

Errors ErrorsOf(const Matrix& out, std::int64_t row, const std::vector<double>& exact) {
  double difference = 0, size = 0, worst = 0, largest = 0;
  for (std::size_t c = 0; c < exact.size(); ++c) {
    const double error = std::abs(out.at(row, static_cast<std::int64_t>(c)) - exact[c]);
    difference += error * error;
    size += exact[c] * exact[c];
    worst = std::max(worst, error);
    largest = std::max(largest, std::abs(exact[c]));
  }
  return {std::sqrt(difference / size), worst / largest};
}

void ExpectClose(const Errors& most, base::KvType type, const std::string& what) {
  const bool rounds = type == base::KvType::kBf16;
  EXPECT_LE(most.of_row, rounds ? 3e-3 : 2e-6) << what;
  EXPECT_LE(most.of_element, rounds ? 4e-3 : 2e-6) << what;
  EXPECT_GE(most.of_row, rounds ? 1e-4 : 2e-8) << what;
  EXPECT_GE(most.of_element, rounds ? 1e-4 : 2e-8) << what;
}

std::string What(const Shape& shape) {
  return std::string(base::Name(shape.type)) + ", head size " + std::to_string(shape.head_size) +
         ", " + std::to_string(shape.query_heads / shape.kv_heads) + " heads a group";
}

// Every head size with few heads that share K and V, with as many as decode by matrix products
// takes, or with more.
constexpr Shape kShapes[] = {{.query_heads = 5, .kv_heads = 1, .head_size = 32, .block_size = 4},
                             {.query_heads = 20, .kv_heads = 1, .head_size = 32, .block_size = 8},
                             {.query_heads = 6, .kv_heads = 2, .head_size = 64, .block_size = 16},
                             {.query_heads = 9, .kv_heads = 1, .head_size = 64, .block_size = 64},
                             {.query_heads = 2, .kv_heads = 2, .head_size = 96, .block_size = 8},
                             {.query_heads = 12, .kv_heads = 1, .head_size = 96, .block_size = 32},
                             {.query_heads = 4, .kv_heads = 1, .head_size = 128, .block_size = 64},
                             {.query_heads = 10, .kv_heads = 1, .head_size = 128, .block_size = 4},
                             {.query_heads = 2, .kv_heads = 1, .head_size = 256, .block_size = 32},
                             {.query_heads = 16, .kv_heads = 1, .head_size = 256}};

TEST_P(AttentionSuite, IsCloseToDoubleFromBothSidesAtEveryEdgeAndHeadSize) {
  for (const base::KvType type : types()) {
    for (Shape shape : kShapes) {
      shape.type = type;
      Sequence sequence = Make(shape, 300, 41);
      Errors most;
      for (const std::int64_t position : EdgePositions(shape.block_size, 300)) {
        most.Take(ErrorsOf(sequence.Run(*ops_, position, 1, 1), 0,
                           sequence.Exact(position, RoundsToBf16())));
      }
      ExpectClose(most, type, What(shape));
    }
  }
}

// Rows over the end of a block, of a tile and of a chunk, in one piece.
TEST_P(AttentionSuite, RowsOfOnePieceAreCloseToDoubleFromBothSidesAtEveryHeadSize) {
  for (const base::KvType type : types()) {
    for (Shape shape : kShapes) {
      shape.type = type;
      Sequence sequence = Make(shape, 262, 42);
      const Matrix first = sequence.Run(*ops_, 0, 20, 20);
      const Matrix last = sequence.Run(*ops_, 245, 17, 17);
      Errors most;
      for (const std::int64_t row : {0, 1, 3, 8, 15, 16, 19}) {
        most.Take(ErrorsOf(first, row, sequence.Exact(row, RoundsToBf16())));
      }
      for (const std::int64_t row : {0, 10, 11, 16}) {
        most.Take(ErrorsOf(last, row, sequence.Exact(245 + row, RoundsToBf16())));
      }
      ExpectClose(most, type, What(shape));
    }
  }
}

TEST_P(AttentionSuite, PrefillEqualsDecodeAndAnyChunking) {
  const Shape shapes[] = {{.query_heads = 3, .kv_heads = 1},
                          {.query_heads = 4, .kv_heads = 2, .head_size = 32, .block_size = 4},
                          {.query_heads = 1, .kv_heads = 1, .head_size = 96, .block_size = 8},
                          {.query_heads = 2, .kv_heads = 1, .head_size = 128, .block_size = 64},
                          {.query_heads = 1, .kv_heads = 1, .head_size = 256, .block_size = 32}};
  for (const base::KvType type : types()) {
    for (const KeyOrder order : orders()) {
      for (Shape shape : shapes) {
        shape.type = type;
        shape.order = order;
        Sequence sequence = Make(shape, 280, 43);
        const Matrix whole = sequence.Run(*ops_, 0, 280, 280);
        for (const std::int64_t piece : {1, 7, 16, 64, 100}) {
          ExpectSameBits(sequence.Run(*ops_, 0, 280, piece), whole,
                         What(shape) + ", pieces of " + std::to_string(piece));
        }
        ExpectSameBits(sequence.Run(*ops_, 250, 30, 30), RowsOf(whole, 250, 30), "the last rows");
      }
    }
  }
}

// The same numbers under another order of K or other block numbers are the same numbers.
TEST_P(AttentionSuite, KeyOrderBlockNumbersAndSizesDoNotChangeBits) {
  Sequence plain = Make({.block_size = 16}, 150, 44);
  const Matrix wanted = plain.Run(*ops_, 0, 150, 150);
  for (const KeyOrder order : orders()) {
    for (const std::int32_t block_size : {4, 8, 16, 32, 64}) {
      Sequence other = Make({.block_size = block_size, .order = order}, 150, 44);
      ExpectSameBits(other.Run(*ops_, 0, 150, 150), wanted,
                     "blocks of " + std::to_string(block_size));
    }
  }
}

TEST_P(AttentionSuite, SequencesOfOneCallDoNotMeet) {
  Sequence sequence = Make({.query_heads = 4, .kv_heads = 2}, 100, 45);
  const Matrix whole = sequence.Run(*ops_, 0, 100, 100);
  // A decode row, a prefill piece and an empty item in one call, rows apart.
  const std::vector<AttentionWork> work = {
      {.first_row = 12, .num_tokens = 1, .first_position = 99, .block_table = sequence.table()},
      {.first_row = 3, .num_tokens = 0, .first_position = 0, .block_table = {}},
      {.first_row = 2, .num_tokens = 9, .first_position = 40, .block_table = sequence.table()}};
  Matrix query(14, sequence.query().columns), out(14, sequence.query().columns);
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

TEST_P(AttentionSuite, ANanInAQueryStaysInItsRowAndHead) {
  Sequence sequence = Make({}, 40, 48);
  sequence.query().at(20, 70) = kNan;
  for (const std::int64_t piece : {40, 1}) {
    const Matrix out = sequence.Run(*ops_, 0, 40, piece);
    for (std::int64_t t = 0; t < 40; ++t) {
      // Columns 64 to 127 are those of head 1.
      for (std::int64_t c = 0; c < out.columns; ++c) {
        ASSERT_EQ(std::isnan(out.at(t, c)), t == 20 && c / 64 == 1) << t << ", " << c;
      }
    }
  }
}

TEST_P(AttentionSuite, LargeScoresDoNotOverflow) {
  for (const base::KvType type : types()) {
    Sequence sequence = Make({.type = type}, 80, 47);
    for (float& q : sequence.query().data) q *= 1e4f;
    const Matrix out = sequence.Run(*ops_, 0, 80, 80);
    for (std::int64_t t = 0; t < 80; ++t) {
      for (std::int64_t c = 0; c < out.columns; ++c) ASSERT_TRUE(std::isfinite(out.at(t, c)));
    }
    ExpectSameBits(sequence.Run(*ops_, 0, 80, 1), out, "row by row");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionSuite, testing::ValuesIn(Backends()), PrintName);

}  // namespace
}  // namespace pagoda::kernels
