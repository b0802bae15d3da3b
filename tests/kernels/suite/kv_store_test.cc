#include <algorithm>
#include <cstring>

#include "tests/kernels/suite/kv_pool.h"

namespace pagoda::kernels {
namespace {

class KvSuite : public KernelSuite {
 protected:
  // All have at least 32 slots in 8 blocks.
  std::vector<PoolShape> PoolShapes() const {
    std::vector<PoolShape> shapes;
    for (const base::KvType type : ops_->capabilities().kv_types) {
      for (const KeyOrder order : GetParam().key_orders) {
        for (const bool gaps : {false, true}) {
          shapes.push_back({.type = type, .order = order, .num_heads = 3, .gaps = gaps});
        }
        shapes.push_back(
            {.type = type, .order = order, .num_heads = 2, .head_size = 64, .block_size = 16});
        shapes.push_back(
            {.type = type, .order = order, .num_heads = 1, .head_size = 96, .block_size = 64});
      }
    }
    for (PoolShape& shape : shapes) shape.gap_bytes = GetParam().gap_bytes;
    return shapes;
  }
};

// Address arithmetic of its own: by the layout's definition, not by its strides.
float Stored(KvPool& pool, bool is_key, std::int64_t slot, std::int64_t head, std::int64_t d) {
  const PoolShape& shape = pool.shape();
  const auto block = pool.Block(static_cast<std::uint32_t>(slot / shape.block_size));
  const std::int64_t layer = 1;
  const std::int64_t plane = (layer * 2 + (is_key ? 0 : 1)) * shape.num_heads + head;
  const std::int64_t token = slot % shape.block_size;
  const bool pairs = is_key && shape.order == KeyOrder::kDimPairMajor;
  const std::int64_t inside =
      pairs ? (d / 2 * shape.block_size + token) * 2 + d % 2 : token * shape.head_size + d;
  const std::int64_t index = plane * shape.block_size * shape.head_size + inside;
  if (shape.type == base::KvType::kF32) {
    float value;
    std::memcpy(&value, block.data() + index * 4, 4);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, block.data() + index * 2, 2);
  return base::FloatFromBf16(bits);
}

TEST_P(KvSuite, WrittenKvLiesWhereTheLayoutSaysAndNowhereElse) {
  for (const PoolShape& shape : PoolShapes()) {
    std::mt19937 random(31);
    KvPool pool(shape);
    const std::int64_t width = std::int64_t{shape.num_heads} * shape.head_size;
    const Matrix key = RandomMatrix(4, width, random);
    const Matrix value = RandomMatrix(4, width, random);
    const std::vector<std::int64_t> slots = {13, -1, 4, 31};
    ops_->WriteKv({key.view(), value.view(), &pool.view(), 1, slots}, stream_);
    Finish();
    for (std::size_t t : {0, 2, 3}) {
      for (std::int64_t c = 0; c < width; ++c) {
        const auto row = static_cast<std::int64_t>(t);
        const auto rounded = [&shape](float x) {
          return shape.type == base::KvType::kF32 ? x : base::FloatFromBf16(base::Bf16FromFloat(x));
        };
        const std::int64_t head = c / shape.head_size;
        const std::int64_t d = c % shape.head_size;
        ASSERT_EQ(Stored(pool, true, slots[t], head, d), rounded(key.at(row, c)));
        ASSERT_EQ(Stored(pool, false, slots[t], head, d), rounded(value.at(row, c)));
      }
    }
    const auto touched = std::count_if(pool.bytes().begin(), pool.bytes().end(),
                                       [](std::byte b) { return b != std::byte{0xff}; });
    EXPECT_LE(touched, 3 * 2 * width * base::BytesPerElement(shape.type));
  }
}

TEST_P(KvSuite, ZeroBlocksLeavesNoOldByteInThemAndTouchesNoOther) {
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
  }
}

// The second copy reads what the first wrote.
TEST_P(KvSuite, CopyBlocksCopiesTheFirstSlotsInOrder) {
  for (const PoolShape& shape : PoolShapes()) {
    std::mt19937 random(33);
    KvPool pool(shape);
    KvPool plain(shape);
    for (std::size_t i = 0; i < pool.bytes().size(); ++i) {
      pool.bytes()[i] = plain.bytes()[i] = static_cast<std::byte>(random());
    }
    const std::vector<BlockCopy> copies = {
        {.source = 1, .target = 6, .num_slots = 3},
        {.source = 6, .target = 2, .num_slots = shape.block_size},
        {.source = 3, .target = 4, .num_slots = 0}};
    ops_->CopyBlocks(pool.view(), copies, stream_);
    Finish();
    reference_->CopyBlocks(plain.view(), copies, stream_);
    EXPECT_EQ(pool.bytes(), plain.bytes());
    const auto source = pool.Block(6);
    const auto target = pool.Block(2);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin()));
    EXPECT_EQ(Stored(pool, true, 6 * shape.block_size + 2, 0, 9),
              Stored(pool, true, 1 * shape.block_size + 2, 0, 9));
  }
}

TEST_P(KvSuite, RopeAndWriteKvEqualsItsParts) {
  for (const PoolShape& shape : PoolShapes()) {
    for (const RopePairs pairs : {RopePairs::kInterleaved, RopePairs::kHalves}) {
      std::mt19937 random(34);
      KvPool fused(shape), parts(shape);
      const std::int64_t width = std::int64_t{shape.num_heads} * shape.head_size;
      const Matrix cos = RandomMatrix(10, shape.head_size / 2, random);
      const Matrix sin = RandomMatrix(10, shape.head_size / 2, random);
      const Matrix query = RandomMatrix(3, 2 * width, random);
      const Matrix key = RandomMatrix(3, width, random);
      const Matrix value = RandomMatrix(3, width, random);
      const std::vector<std::int32_t> positions = {9, 0, 4};
      const std::vector<std::int64_t> slots = {30, 8, -1};
      Matrix q1 = query, k1 = key, q2 = query, k2 = key;
      RopeParams rope = {q1.view(), k1.view(),  shape.head_size, shape.head_size,
                         pairs,     cos.view(), sin.view(),      positions};
      ops_->RopeAndWriteKv({rope, {k1.view(), value.view(), &fused.view(), 1, slots}}, stream_);
      rope.query = q2.view();
      rope.key = k2.view();
      ops_->Rope(rope, stream_);
      ops_->WriteKv({k2.view(), value.view(), &parts.view(), 1, slots}, stream_);
      Finish();
      ExpectSameBits(q1, q2, "query");
      EXPECT_EQ(fused.bytes(), parts.bytes());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, KvSuite, testing::ValuesIn(Backends()), PrintName);

}  // namespace
}  // namespace pagoda::kernels
