#include "kernels/cuda/ops/cuda_ops.h"

#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

TEST_F(CudaTest, CapabilitiesNameWhatIsThereAndRefuseTheRest) {
  const Capabilities& capabilities = ops_->capabilities();
  EXPECT_EQ(capabilities.backend, "cuda");
  EXPECT_EQ(capabilities.pack_layout, PackLayout::kBf16Rows);
  base::KvGeometry geometry = {.groups = {{.num_layers = 1,
                                           .window_tokens = std::nullopt,
                                           .num_kv_heads = 1,
                                           .head_size = 64,
                                           .type = base::KvType::kBf16}},
                               .block_size = 16};
  EXPECT_TRUE(CheckGeometry(capabilities, geometry).ok());
  geometry.groups[0].head_size = 80;
  EXPECT_EQ(CheckGeometry(capabilities, geometry).message(),
            "the cuda backend has no head size 80; it has 32, 64, 96, 128, 256");
  geometry.groups[0].head_size = 64;
  geometry.groups[0].type = base::KvType::kF32;
  EXPECT_EQ(CheckGeometry(capabilities, geometry).message(),
            "the cuda backend has no KV type f32; it has bf16");
  geometry.block_size = 2;
  EXPECT_EQ(CheckGeometry(capabilities, geometry).message(),
            "the cuda backend has no block size 2; it has 4, 8, 16, 32, 64");
}

TEST_F(CudaTest, KvOfAnotherOrderOrAlignmentAborts) {
  std::mt19937 random(20);
  const Matrix key = RandomMatrix(1, 32, random);
  const std::vector<std::int64_t> slots = {4};
  const KvPool pairs({.order = KeyOrder::kDimPairMajor});
  EXPECT_DEATH(ops_->WriteKv({key.view(), key.view(), &pairs.view(), 1, slots}, stream_),
               "kTokenMajor");
  const KvPool pool({});
  KvView shifted = pool.view();
  shifted.key.block_stride += 8;
  EXPECT_DEATH(ops_->WriteKv({key.view(), key.view(), &shifted, 1, slots}, stream_), "kCopyBytes");
}

}  // namespace
}  // namespace pagoda::kernels::cuda
