#include "model/kv_storage.h"

#include <gtest/gtest.h>

#include "kernels/reference/reference_ops.h"

namespace pagoda::model {
namespace {

const base::KvGeometry kGeometry = {.groups = {{.num_layers = 2,
                                                .window_tokens = std::nullopt,
                                                .num_kv_heads = 2,
                                                .head_size = 32,
                                                .type = base::KvType::kF32}},
                                    .block_size = 4};

TEST(KvStorage, BlocksAreExtentsThatDoNotTouchAndBeginAsNaNs) {
  const auto device = kernels::MakeHostDevice();
  const auto storage = KvStorage::Create(*device, kGeometry, 3, kernels::KeyOrder::kTokenMajor);
  ASSERT_TRUE(storage.ok()) << storage.status();
  const kernels::KvView& view = storage->view(base::KvGroupId{0});
  EXPECT_EQ(view.extent_bytes, kGeometry.BytesPerBlock(0));
  EXPECT_GT(view.key.block_stride, view.extent_bytes);
  EXPECT_EQ(view.value.block_stride, view.key.block_stride);
  EXPECT_EQ(view.value.Head(2, 1, 1)[0], std::byte{0xff});
  storage->CheckGaps();
}

TEST(KvStorage, ZeroingABlockFillsItsExtentAndNothingElse) {
  const auto ops = kernels::MakeReferenceOps();
  const auto storage =
      KvStorage::Create(ops->device(), kGeometry, 3, kernels::KeyOrder::kDimPairMajor);
  ASSERT_TRUE(storage.ok()) << storage.status();
  const kernels::KvView& view = storage->view(base::KvGroupId{0});
  const std::uint32_t block = 1;
  ops->ZeroBlocks(view, {&block, 1}, kernels::Stream{});
  const std::byte* const begin = view.key.base + view.key.block_stride;
  for (std::int64_t i = 0; i < view.extent_bytes; ++i) ASSERT_EQ(begin[i], std::byte{0}) << i;
  EXPECT_EQ(begin[view.key.block_stride], std::byte{0xff});
  storage->CheckGaps();
}

TEST(KvStorageDeathTest, AWriteBetweenBlocksOrIntoTheNullBlockIsFound) {
  const auto device = kernels::MakeHostDevice();
  const auto storage = KvStorage::Create(*device, kGeometry, 2, kernels::KeyOrder::kTokenMajor);
  ASSERT_TRUE(storage.ok()) << storage.status();
  const kernels::KvView& view = storage->view(base::KvGroupId{0});
  std::byte& gap = view.key.base[view.key.block_stride + view.extent_bytes];
  gap = std::byte{0};
  EXPECT_DEATH(storage->CheckGaps(), "gap after a block");
  gap = std::byte{0xff};
  view.value.Head(0, 1, 1)[3] = std::byte{7};
  EXPECT_DEATH(storage->CheckGaps(), "null block");
}

TEST(KvStorage, APoolThatCannotBeHeldIsRefusedWithItsNumbers) {
  const auto device = kernels::MakeHostDevice();
  base::KvGeometry huge = kGeometry;
  huge.groups[0].num_layers = 1 << 30;
  const auto storage = KvStorage::Create(*device, huge, 1 << 30, kernels::KeyOrder::kTokenMajor);
  EXPECT_EQ(storage.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace pagoda::model
