#include "tests/kernels/cuda/cuda_fixture.h"
#include "tests/kernels/suite/paged_sequence.h"

namespace pagoda::kernels::cuda {
namespace {

class DecodeTest : public CudaTest {
 protected:
  DecodeTest() {
    auto prefill = MakeCudaOps(emulation::MakeEmulatedDevice({}), {.splits_decode = false});
    EXPECT_TRUE(prefill.ok());
    prefill_ = *std::move(prefill);
  }
  std::unique_ptr<Ops> prefill_;
};

// Head sizes, groups of 1 to 16 heads, block sizes.
constexpr Shape kShapes[] = {{.query_heads = 4, .kv_heads = 2, .head_size = 32, .block_size = 4},
                             {.query_heads = 3, .kv_heads = 1, .head_size = 64, .block_size = 16},
                             {.query_heads = 12, .kv_heads = 1, .head_size = 64, .block_size = 8},
                             {.query_heads = 2, .kv_heads = 2, .head_size = 96, .block_size = 32},
                             {.query_heads = 16, .kv_heads = 2, .head_size = 128, .block_size = 64},
                             {.query_heads = 16, .kv_heads = 1, .head_size = 128, .block_size = 16},
                             {.query_heads = 5, .kv_heads = 1, .head_size = 256, .block_size = 16}};

TEST_F(DecodeTest, HasThePrefillKernelsBitsAtEveryEdge) {
  for (const Shape& shape : kShapes) {
    Sequence sequence(shape, 530, 61);
    for (const std::int64_t position :
         {0, 1, 15, 16, 31, 32, 63, 64, 65, 255, 256, 511, 512, 529}) {
      ExpectSameBits(sequence.Run(*ops_, position, 1, 1), sequence.Run(*prefill_, position, 1, 1),
                     "head size " + std::to_string(shape.head_size) + ", position " +
                         std::to_string(position));
    }
  }
}

TEST_F(DecodeTest, StandsEveryScheduleAndEveryNumberOfCtas) {
  Sequence sequence({.query_heads = 6, .kv_heads = 2}, 700, 63);
  // Rows 690 to 699, each an item of its own, three slices each.
  const Matrix wanted = sequence.Run(*prefill_, 690, 10, 10);
  for (const std::int32_t ctas : {2, 14, 264}) {
    for (const Schedule& schedule : HostileSchedules()) {
      auto ops =
          MakeCudaOps(emulation::MakeEmulatedDevice({.schedule = schedule}), {.decode_ctas = ctas});
      ASSERT_TRUE(ops.ok());
      ExpectSameBits(sequence.Run(**ops, 690, 10, 1), wanted,
                     Describe(schedule) + ", CTAs " + std::to_string(ctas));
    }
  }
}

TEST_F(DecodeTest, ReadsEachByteOfTheContextOnceWithoutBankConflicts) {
  for (const std::int32_t head_size : {32, 64, 96, 128, 256}) {
    Sequence sequence({.query_heads = 6, .kv_heads = 2, .head_size = head_size}, 600, 64);
    const emulation::Counters before = device_->counters();
    sequence.Run(*ops_, 599, 1, 1);
    const emulation::Counters& after = device_->counters();
    EXPECT_EQ(after.async_bytes - before.async_bytes,
              static_cast<std::uint64_t>(600 * 2 * 2 * head_size * 2));
    EXPECT_EQ(after.bank_conflicts - before.bank_conflicts, 0u) << head_size;
  }
}

TEST_F(DecodeTest, MoreHeadsThanColumnsGoThroughThePrefillKernel) {
  Sequence sequence({.query_heads = 20, .kv_heads = 1, .head_size = 32}, 70, 65);
  ExpectSameBits(sequence.Run(*ops_, 69, 1, 1), sequence.Run(*prefill_, 69, 1, 1), "20 heads");
}

}  // namespace
}  // namespace pagoda::kernels::cuda
