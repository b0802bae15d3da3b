#include <algorithm>

#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

struct RopeCase {
  std::int32_t head_size, rotary_size;
  RopePairs pairs;
};
constexpr RopeCase kRopeCases[] = {
    {64, 64, RopePairs::kInterleaved}, {64, 64, RopePairs::kHalves},   {32, 20, RopePairs::kHalves},
    {32, 20, RopePairs::kInterleaved}, {256, 256, RopePairs::kHalves}, {96, 2, RopePairs::kHalves}};

TEST_F(CudaTest, RopeHasTheReferencesBitsForAllKindsOfPairs) {
  for (const RopeCase& each : kRopeCases) {
    std::mt19937 random(21);
    const Matrix cos = RandomMatrix(50, each.rotary_size / 2, random);
    const Matrix sin = RandomMatrix(50, each.rotary_size / 2, random);
    const std::vector<std::int32_t> positions = {0, 49, 7, 7};
    Matrix query = RandomMatrix(4, 3 * each.head_size, random);
    Matrix key = RandomMatrix(4, each.head_size, random);
    Matrix wanted_query = query, wanted_key = key;
    RopeParams params = {query.view(), key.view(), each.head_size, each.rotary_size,
                         each.pairs,   cos.view(), sin.view(),     positions};
    ops_->Rope(params, stream_);
    Finish();
    params.query = wanted_query.view();
    params.key = wanted_key.view();
    reference_->Rope(params, stream_);
    ExpectSameBits(query, wanted_query, "query");
    ExpectSameBits(key, wanted_key, "key");
  }
}

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

TEST_F(CudaTest, WriteKvHasTheReferencesBytesAndTouchesNoOther) {
  for (const PoolShape& shape : PoolShapes()) {
    std::mt19937 random(31);
    KvPool pool(shape), plain(shape);
    const std::int64_t width = std::int64_t{shape.num_heads} * shape.head_size;
    const Matrix key = RandomMatrix(4, width, random);
    const Matrix value = RandomMatrix(4, width, random);
    const std::vector<std::int64_t> slots = {7 * shape.block_size + 3, 5, -1, 3 * shape.block_size};
    ops_->WriteKv({key.view(), value.view(), &pool.view(), 1, slots}, stream_);
    Finish();
    reference_->WriteKv({key.view(), value.view(), &plain.view(), 1, slots}, stream_);
    EXPECT_EQ(pool.bytes(), plain.bytes());
  }
}

TEST_F(CudaTest, RopeAndWriteKvEqualsItsParts) {
  for (const PoolShape& shape : PoolShapes()) {
    std::mt19937 random(34);
    KvPool pool(shape), plain(shape);
    const std::int64_t width = std::int64_t{shape.num_heads} * shape.head_size;
    const Matrix cos = RandomMatrix(10, shape.head_size / 2, random);
    const Matrix sin = RandomMatrix(10, shape.head_size / 2, random);
    Matrix query = RandomMatrix(3, 2 * width, random);
    Matrix key = RandomMatrix(3, width, random);
    const Matrix value = RandomMatrix(3, width, random);
    const std::vector<std::int32_t> positions = {9, 0, 4};
    const std::vector<std::int64_t> slots = {2 * shape.block_size, shape.block_size + 1, -1};
    Matrix wanted_query = query, wanted_key = key;
    RopeParams rope = {query.view(),       key.view(), shape.head_size, shape.head_size,
                       RopePairs::kHalves, cos.view(), sin.view(),      positions};
    ops_->RopeAndWriteKv({rope, {key.view(), value.view(), &pool.view(), 1, slots}}, stream_);
    Finish();
    rope.query = wanted_query.view();
    rope.key = wanted_key.view();
    reference_->Rope(rope, stream_);
    reference_->WriteKv({wanted_key.view(), value.view(), &plain.view(), 1, slots}, stream_);
    ExpectSameBits(query, wanted_query, "query");
    EXPECT_EQ(pool.bytes(), plain.bytes());
  }
}

TEST_F(CudaTest, ZeroBlocksLeavesNoOldByteInThemAndTouchesNoOther) {
  for (const PoolShape& shape : PoolShapes()) {
    KvPool pool(shape);
    const std::vector<std::uint32_t> blocks = {5, 2, 7};
    ops_->ZeroBlocks(pool.view(), blocks, stream_);
    Finish();
    for (std::uint32_t b = 0; b < 8; ++b) {
      const bool zeroed = std::find(blocks.begin(), blocks.end(), b) != blocks.end();
      const std::byte wanted{zeroed ? std::uint8_t{0} : std::uint8_t{0xff}};
      const auto bytes = pool.Block(b);
      EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(),
                              [wanted](std::byte found) { return found == wanted; }));
    }
    const auto touched = std::count(pool.bytes().begin(), pool.bytes().end(), std::byte{0});
    EXPECT_EQ(static_cast<std::size_t>(touched), 3 * pool.Block(0).size());
  }
}

// In order: the second copy reads what the first wrote, the third overwrites what it read.
TEST_F(CudaTest, CopyBlocksCopiesTheFirstSlotsInOrder) {
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
