#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

std::vector<PoolShape> PoolShapes() {
  return {{.num_heads = 3, .head_size = 32, .block_size = 4},
          {.num_heads = 2,
           .head_size = 64,
           .block_size = 16,
           .num_blocks = 8,
           .gaps = true,
           .gap_bytes = 48},
          {.num_heads = 1, .head_size = 96, .block_size = 64, .num_blocks = 8}};
}

// In order: the second copy reads what the first wrote, the third overwrites what it read.
TEST_F(CudaTest, CopiesOfBlocksHappenInOrderUnderEverySchedule) {
  for (const Schedule& schedule : HostileSchedules()) {
    device_->SetSchedule(schedule);
    for (const PoolShape& shape : PoolShapes()) {
      std::mt19937 random(33);
      KvPool pool(shape), plain(shape);
      for (std::size_t i = 0; i < pool.bytes().size(); ++i) {
        pool.bytes()[i] = plain.bytes()[i] = static_cast<std::byte>(random());
      }
      const std::vector<BlockCopy> copies = {
          {.source = 1, .target = 6, .num_slots = 3},
          {.source = 6, .target = 2, .num_slots = shape.block_size},
          {.source = 5, .target = 6, .num_slots = 1},
          {.source = 3, .target = 4, .num_slots = 0}};
      ops_->CopyBlocks(pool.view(), copies, stream_);
      Finish();
      reference_->CopyBlocks(plain.view(), copies, stream_);
      EXPECT_EQ(pool.bytes(), plain.bytes()) << Describe(schedule);
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels::cuda
