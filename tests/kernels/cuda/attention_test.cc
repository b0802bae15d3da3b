#include "kernels/cuda/kernel_table.h"
#include "tests/kernels/cuda/cuda_fixture.h"
#include "tests/kernels/suite/paged_sequence.h"

namespace pagoda::kernels::cuda {
namespace {

// Without the decode kernel, so that single rows run through the prefill kernel too.
class AttentionTest : public CudaTest {
 protected:
  AttentionTest() : CudaTest({.splits_decode = false}) {}
};

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
