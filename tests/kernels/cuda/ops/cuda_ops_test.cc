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

TEST_F(CudaTest, CompositeOpsEqualTheirParts) {
  for (const std::int64_t rows : {3, 20}) {
    std::mt19937 random(18);
    const Matrix in = RandomMatrix(rows, 64, random);
    const Matrix norm_weight = RandomMatrix(1, 64, random);
    const OwnedWeight weight({RandomWeight(ElementType::kQ4_1, 96, 64, random),
                              RandomWeight(ElementType::kQ4_1, 96, 64, random)},
                             WeightRole::kGateUp, ActivationType::kBf16, *ops_);
    Matrix normed(rows, 64), product(rows, 192), wanted(rows, 96), found(rows, 96),
        found_product(rows, 192), scratch(rows, 64);
    RmsNormParams norm = {in.view(), norm_weight.data, 1e-5f, normed.view()};
    MatmulParams matmul = {
        .x = normed.view(), .weight = weight.get(), .out = product.view(), .row_adapters = {}};
    ops_->RmsNorm(norm, stream_);
    ops_->Matmul(matmul, stream_);
    ops_->SiluMul({product.view(), wanted.view()}, stream_);
    Finish();
    matmul.out = found_product.view();
    ops_->GateUp({std::nullopt, matmul, found.view()}, stream_);
    Finish();
    ExpectSameBits(found, wanted, "without a norm");
    norm.out = matmul.x.data == nullptr ? normed.view() : scratch.view();
    matmul.x = scratch.view();
    ops_->NormMatmul({norm, matmul}, stream_);
    Finish();
    ExpectSameBits(found_product, product, "norm and matmul");
    ops_->GateUp({norm, matmul, found.view()}, stream_);
    Finish();
    ExpectSameBits(found, wanted, "gate, up and activation");
  }
}

TEST_F(CudaTest, SampleAndScoreGiveTheReferencesAnswers) {
  std::mt19937 random(19);
  const Matrix logits = RandomMatrix(1, 300, random, 3.0f);
  SampleRow row = {.logits = std::span(logits.data).first(300), .temperature = 0.8f, .top_p = 0.9f};
  for (std::uint32_t position = 0; position < 20; ++position) {
    row.position = position;
    SampleOutcome found, wanted;
    ops_->Sample({std::span(&row, 1), std::span(&found, 1)}, stream_);
    reference_->Sample({std::span(&row, 1), std::span(&wanted, 1)}, stream_);
    Finish();
    EXPECT_EQ(found.token, wanted.token);
  }
  const ScoreRow score = {.logits = row.logits, .token = 7, .token_ids = {}, .alternatives = {}};
  ScoreOutcome found, wanted;
  ops_->Score({std::span(&score, 1), std::span(&found, 1)}, stream_);
  reference_->Score({std::span(&score, 1), std::span(&wanted, 1)}, stream_);
  EXPECT_EQ(found.logprob, wanted.logprob);
  EXPECT_EQ(found.rank, wanted.rank);
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
