#include <algorithm>
#include <cmath>

#include "kernels/cuda/kernel_table.h"
#include "tests/kernels/cuda/paged_sequence.h"

namespace pagoda::kernels::cuda {
namespace {

// Without the decode kernel, so that single rows run through the prefill kernel too.
class AttentionTest : public CudaTest {
 protected:
  AttentionTest() : CudaTest({.splits_decode = false}) {}
};

TEST_F(AttentionTest, IsCloseToDoubleFromBothSidesAtEveryEdgeAndHeadSize) {
  const Shape shapes[] = {{.query_heads = 5, .kv_heads = 1, .head_size = 32, .block_size = 4},
                          {.query_heads = 6, .kv_heads = 2, .head_size = 64, .block_size = 16},
                          {.query_heads = 2, .kv_heads = 2, .head_size = 96, .block_size = 8},
                          {.query_heads = 4, .kv_heads = 1, .head_size = 128, .block_size = 64},
                          {.query_heads = 2, .kv_heads = 1, .head_size = 256, .block_size = 32}};
  for (const Shape& shape : shapes) {
    Sequence sequence(shape, 300, 41);
    double largest = 0;
    for (const std::int64_t position : {0, 1, 3, 4, 15, 16, 63, 64, 255, 256, 299}) {
      const Matrix out = sequence.Run(*ops_, position, 1, 1);
      largest = std::max(largest, RelativeError(out, 0, sequence.Exact(position)));
    }
    EXPECT_LE(largest, 3e-3) << shape.head_size;
    EXPECT_GE(largest, 1e-4) << shape.head_size;
  }
}

TEST_F(AttentionTest, DecodeEqualsPrefillHoweverItIsCut) {
  const Shape shapes[] = {{.query_heads = 3, .kv_heads = 1},
                          {.query_heads = 4, .kv_heads = 2, .head_size = 32, .block_size = 4},
                          {.query_heads = 2, .kv_heads = 1, .head_size = 128, .block_size = 64}};
  for (const Shape& shape : shapes) {
    Sequence sequence(shape, 280, 43);
    const Matrix whole = sequence.Run(*ops_, 0, 280, 280);
    for (const std::int64_t piece : {16, 100}) {
      ExpectSameBits(sequence.Run(*ops_, 0, 280, piece), whole,
                     "pieces of " + std::to_string(piece));
    }
    for (const std::int64_t position : {0, 1, 15, 16, 17, 63, 64, 65, 127, 255, 256, 257, 279}) {
      ExpectSameBits(sequence.Run(*ops_, position, 1, 1), RowsOf(whole, position, 1),
                     "position " + std::to_string(position));
    }
    ExpectSameBits(sequence.Run(*ops_, 251, 29, 29), RowsOf(whole, 251, 29), "the last rows");
  }
}

TEST_F(AttentionTest, StandsEverySchedule) {
  for (const Shape& shape : {Shape{}, Shape{.query_heads = 2, .kv_heads = 1, .head_size = 256}}) {
    Sequence sequence(shape, 330, 44);
    const Matrix wanted = sequence.Run(*ops_, 250, 80, 80);
    for (const Schedule& schedule : HostileSchedules()) {
      device_->SetSchedule(schedule);
      ExpectSameBits(sequence.Run(*ops_, 250, 80, 80), wanted, Describe(schedule));
    }
  }
}

TEST_F(AttentionTest, BlockNumbersAndSizesDoNotChangeBits) {
  Sequence plain({.block_size = 16}, 150, 45);
  const Matrix wanted = plain.Run(*ops_, 0, 150, 150);
  for (const std::int32_t block_size : {4, 8, 32, 64}) {
    Sequence other({.block_size = block_size}, 150, 45);
    ExpectSameBits(other.Run(*ops_, 0, 150, 150), wanted, std::to_string(block_size));
  }
}

TEST_F(AttentionTest, SequencesOfOneCallDoNotMeet) {
  Sequence sequence({.query_heads = 4, .kv_heads = 2}, 100, 46);
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

TEST_F(AttentionTest, LargeScoresDoNotOverflow) {
  Sequence sequence({}, 80, 47);
  for (float& q : sequence.query().data) q *= 1e4f;
  const Matrix out = sequence.Run(*ops_, 0, 80, 80);
  for (std::int64_t t = 0; t < 80; ++t) {
    for (std::int64_t c = 0; c < out.columns; ++c) ASSERT_TRUE(std::isfinite(out.at(t, c)));
  }
  ExpectSameBits(sequence.Run(*ops_, 70, 1, 1), RowsOf(out, 70, 1), "alone");
}

TEST_F(AttentionTest, ANanInAQueryStaysInItsRow) {
  Sequence sequence({}, 40, 48);
  sequence.query().at(20, 70) = kNan;
  const Matrix out = sequence.Run(*ops_, 0, 40, 40);
  for (std::int64_t t = 0; t < 40; ++t) {
    // Columns of head 1 of six.
    for (std::int64_t c = 64; c < 128; ++c) EXPECT_EQ(std::isnan(out.at(t, c)), t == 20);
    for (std::int64_t c = 128; c < out.columns; ++c) EXPECT_FALSE(std::isnan(out.at(t, c)));
  }
}

// K and V of the context are read once for all heads that share them.
TEST_F(AttentionTest, DecodeReadsEachByteOfTheContextOnceWithoutBankConflicts) {
  for (const std::int32_t head_size : {32, 64, 96, 128, 256}) {
    Sequence sequence({.query_heads = 6, .kv_heads = 2, .head_size = head_size}, 300, 49);
    const emulation::Counters before = device_->counters();
    sequence.Run(*ops_, 299, 1, 1);
    const emulation::Counters& after = device_->counters();
    EXPECT_EQ(after.async_bytes - before.async_bytes,
              static_cast<std::uint64_t>(300 * 2 * 2 * head_size * 2));
    EXPECT_EQ(after.bank_conflicts - before.bank_conflicts, 0u) << head_size;
  }
}

TEST(AttentionShapes, FitTheSmallestMultiprocessorsAndWholeWarps) {
  for (const int head_size : {32, 64, 96, 128, 256}) {
    const AttentionShape shape = AttentionShapeOf(head_size);
    EXPECT_LE(shape.SharedBytes(), 99 * 1024);
    EXPECT_EQ(shape.rows % 16, 0);
    EXPECT_EQ(kChunkTokens % shape.tile, 0);
  }
}

}  // namespace
}  // namespace pagoda::kernels::cuda
