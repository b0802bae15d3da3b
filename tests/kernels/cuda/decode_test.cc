#include "kernels/emulation/bank_watch.h"
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

// One head to itself, some, as many as the narrow kernel has columns for, one more, some, as many
// as the wide kernel has.
constexpr std::int32_t kGroups[] = {1, 5, 8, 9, 12, 16};

TEST_F(DecodeTest, HasThePrefillKernelsBitsAtEveryEdgeOfEveryHeadSizeAndGroup) {
  constexpr std::int32_t kBlockSizes[] = {4, 8, 16, 32, 64};
  std::size_t number = 0;
  for (const std::int32_t head_size : {32, 64, 96, 128, 256}) {
    for (const std::int32_t group : kGroups) {
      // A head size meets every block size, and so does a group.
      const std::int32_t block_size = kBlockSizes[number++ % 5];
      Sequence sequence(
          {.query_heads = group, .kv_heads = 1, .head_size = head_size, .block_size = block_size},
          530, 61);
      for (const std::int64_t position : EdgePositions(block_size, 530)) {
        ExpectSameBits(sequence.Run(*ops_, position, 1, 1), sequence.Run(*prefill_, position, 1, 1),
                       std::to_string(head_size) + " by " + std::to_string(group) +
                           " heads, blocks of " + std::to_string(block_size) + ", position " +
                           std::to_string(position));
        if (HasFatalFailure()) return;
      }
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

// Every way in which the main loop uses shared memory: matrix loads (counted above too), the
// copies of K and V, the exchange of maxima and of weights.
TEST_F(DecodeTest, NoAccessToSharedMemoryMeetsABankTwice) {
  for (const std::int32_t head_size : {32, 64, 96, 128, 256}) {
    for (const std::int32_t group : {3, 12}) {
      Sequence sequence({.query_heads = group, .kv_heads = 1, .head_size = head_size}, 150, 66);
      const emulation::BankWatch watch;
      sequence.Run(*ops_, 149, 1, 1);
      std::uint64_t in_decode = 0, of_copies = 0;
      for (const emulation::BankWatch::Place& place : watch.Places()) {
        EXPECT_EQ(place.conflicts, 0u) << place.file << ":" << place.line << ", head size "
                                       << head_size << ", group " << group;
        in_decode += place.file == "decode.cuh" ? 1 : 0;
        of_copies += place.file == "kv_tile.cuh" ? 1 : 0;
      }
      EXPECT_EQ(in_decode, 5u);
      EXPECT_EQ(of_copies, 2u);
    }
  }
}

TEST_F(DecodeTest, MoreHeadsThanColumnsGoThroughThePrefillKernel) {
  Sequence sequence({.query_heads = 20, .kv_heads = 1, .head_size = 32}, 70, 65);
  ExpectSameBits(sequence.Run(*ops_, 69, 1, 1), sequence.Run(*prefill_, 69, 1, 1), "20 heads");
}

}  // namespace
}  // namespace pagoda::kernels::cuda
