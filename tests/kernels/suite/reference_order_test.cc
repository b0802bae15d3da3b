// What the backends promise that work in the order of kernels/README.md part 3: the bits of the
// reference. A backend with an order of its own is not built with this file.
#include "tests/kernels/suite/paged_sequence.h"
#include "tests/kernels/suite/product.h"

namespace pagoda::kernels {
namespace {

TEST_P(KernelSuite, MatmulEqualsTheReferenceForEveryFormatAndShape) {
  for (const ActivationType activation : Activations()) {
    for (const ElementType format : kAllElementTypes) {
      for (const std::int64_t n : {1, 31, 32, 33, 100}) {
        for (const std::int64_t least : {32, 96, 576}) {
          const std::int64_t k = WholeBlocks(format, least);
          std::mt19937 random(static_cast<unsigned>(n * 1000 + least));
          const SourceWeight source = RandomWeight(format, n, k, random);
          const Product product({source}, WeightRole::kLmHead, activation, *ops_);
          const Product plain({source}, WeightRole::kLmHead, activation, *reference_);
          for (const std::int64_t m : {1, 2, 3, 4, 7, 17}) {
            const Matrix x = RandomMatrix(m, k, random);
            ExpectSameBits(product.Run(x), plain.Run(x), Case(format, activation));
          }
        }
      }
    }
  }
}

// Values at which quantizing could go wrong: zeros, tiny, huge, one outlier, exact halves.
TEST_P(KernelSuite, HardActivationsGiveTheReferencesBits) {
  std::mt19937 random(16);
  const SourceWeight source = RandomWeight(ElementType::kQ4_1, 33, 192, random);
  Matrix x(7, 192);
  for (std::int64_t k = 0; k < 192; ++k) {
    x.at(0, k) = 0.0f;
    x.at(1, k) = k % 3 == 0 ? 1e-38f : -1e-41f;
    x.at(2, k) = k % 2 == 0 ? 3e30f : -2e30f;
    x.at(3, k) = k == 50 ? 1e6f : 1e-3f;
    x.at(4, k) = static_cast<float>(k % 32) - 15.5f;
    x.at(5, k) = k % 32 == 0 ? 127.0f : static_cast<float>(k % 5) + 0.5f;  // ties to even
    x.at(6, k) = -0.0f;
  }
  for (const ActivationType activation : Activations()) {
    ExpectSameBits(Product({source}, WeightRole::kDown, activation, *ops_).Run(x),
                   Product({source}, WeightRole::kDown, activation, *reference_).Run(x),
                   Name(activation));
  }
}

TEST_P(KernelSuite, AttentionEqualsTheReferenceAtEveryEdgeOfBlockTileAndChunk) {
  const Shape shapes[] = {
      {.query_heads = 6, .kv_heads = 2, .head_size = 64, .block_size = 16},
      {.query_heads = 9, .kv_heads = 3, .head_size = 64, .order = KeyOrder::kDimPairMajor},
      {.query_heads = 4,
       .kv_heads = 1,
       .head_size = 32,
       .block_size = 4,
       .type = base::KvType::kF32,
       .order = KeyOrder::kDimPairMajor},
      {.query_heads = 2, .kv_heads = 2, .head_size = 128, .type = base::KvType::kF32},
      {.query_heads = 5, .kv_heads = 1, .head_size = 32, .block_size = 4},
      {.query_heads = 2,
       .kv_heads = 1,
       .head_size = 256,
       .block_size = 32,
       .order = KeyOrder::kDimPairMajor},
  };
  for (Shape shape : shapes) {
    shape.gap_bytes = GetParam().gap_bytes;
    Sequence sequence(shape, 530, 42);
    for (const std::int64_t at :
         {0, 1, 3, 4, 15, 16, 17, 31, 63, 64, 65, 255, 256, 257, 511, 529}) {
      ExpectSameBits(sequence.Run(*ops_, at, 1, 1), sequence.Run(*reference_, at, 1, 1),
                     "position " + std::to_string(at));
    }
  }
}

TEST_P(KernelSuite, LargeScoresHaveTheReferencesBits) {
  Sequence sequence({.type = base::KvType::kF32, .gap_bytes = GetParam().gap_bytes}, 80, 47);
  for (float& q : sequence.query().data) q *= 1e4f;
  ExpectSameBits(sequence.Run(*ops_, 0, 80, 80), sequence.Run(*reference_, 0, 80, 80),
                 "large scores");
}

// What a caller must see when KV has gone bad: not a plausible number. Rows before it do not see
// it, though they may share its tile.
TEST_P(KernelSuite, ANanInTheContextReachesTheRowsThatSeeItOnly) {
  Sequence sequence({.query_heads = 2,
                     .kv_heads = 1,
                     .type = base::KvType::kF32,
                     .gap_bytes = GetParam().gap_bytes},
                    40, 46);
  Matrix bad(1, 64);
  for (std::int64_t d = 0; d < 64; ++d) bad.at(0, d) = d == 5 ? kNan : 0.0f;
  const auto slots = SlotsOf(sequence.table(), 16, 20, 1);
  ops_->WriteKv({bad.view(), bad.view(), &sequence.pool().view(), 1, slots}, stream_);
  Finish();
  const Matrix out = sequence.Run(*ops_, 0, 40, 40);
  for (std::int64_t t = 0; t < 40; ++t) {
    for (std::int64_t c = 0; c < out.columns; ++c) EXPECT_EQ(std::isnan(out.at(t, c)), t >= 20);
  }
}

}  // namespace
}  // namespace pagoda::kernels
