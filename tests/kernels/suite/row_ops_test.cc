#include <cmath>

#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {
namespace {

TEST_P(KernelSuite, EmbeddingIsTheWidenedRowInEveryFormat) {
  for (const ElementType format : kAllElementTypes) {
    std::mt19937 random(1);
    const std::int64_t columns = WholeBlocks(format, 96);
    const SourceWeight source = RandomWeight(format, 7, columns, random);
    const OwnedWeight table({source}, WeightRole::kEmbedding, Activations().back(), *ops_);
    const std::vector<float> rows = source.Widened();
    const std::vector<base::TokenId> tokens = {6, 0, 3, 3, 1};
    Matrix out(5, columns);
    ops_->Embed({table.get(), tokens, out.view()}, stream_);
    Finish();
    Matrix wanted(5, columns);
    for (std::int64_t t = 0; t < 5; ++t) {
      for (std::int64_t k = 0; k < columns; ++k) {
        wanted.at(t, k) = AsTaken(
            rows[static_cast<std::size_t>(tokens[static_cast<std::size_t>(t)] * columns + k)]);
      }
    }
    ExpectSameBits(out, wanted, Name(format));
  }
}

TEST_P(KernelSuite, RmsNormIsCloseToDoubleAndEqualToTheReferenceAtAnyWidth) {
  std::mt19937 random(2);
  double largest = 0;
  for (const std::int64_t width : {1, 7, 16, 31, 32, 33, 64, 100, 576, 4096}) {
    const Matrix in = RandomMatrix(4, width, random);
    const Matrix weight = RandomMatrix(1, width, random);
    const std::span<const float> weights(weight.data);
    Matrix out(4, width);
    Matrix wanted(4, width);
    ops_->RmsNorm({in.view(), weights, 1e-5f, out.view()}, stream_);
    reference_->RmsNorm({in.view(), weights, 1e-5f, wanted.view()}, stream_);
    Finish();
    ExpectSameBits(out, wanted, "width " + std::to_string(width));
    for (std::int64_t t = 0; t < 4; ++t) {
      double square = 0;
      for (std::int64_t k = 0; k < width; ++k) square += double{in.at(t, k)} * in.at(t, k);
      const double inverse = 1 / std::sqrt(square / static_cast<double>(width) + 1e-5f);
      for (std::int64_t k = 0; k < width; ++k) {
        const double exact = in.at(t, k) * inverse * weights[static_cast<std::size_t>(k)];
        largest = std::max(largest, std::abs(out.at(t, k) - exact) / (std::abs(exact) + 1e-6));
      }
    }
  }
  EXPECT_LE(largest, 6e-7);
  EXPECT_GE(largest, 6e-8);
}

TEST_P(KernelSuite, RmsNormMayWorkInPlace) {
  std::mt19937 random(3);
  const Matrix in = RandomMatrix(3, 64, random);
  const Matrix weight = RandomMatrix(1, 64, random);
  Matrix apart(3, 64);
  Matrix in_place = in;
  ops_->RmsNorm({in.view(), weight.data, 1e-5f, apart.view()}, stream_);
  ops_->RmsNorm({in_place.view(), weight.data, 1e-5f, in_place.view()}, stream_);
  Finish();
  ExpectSameBits(in_place, apart, "in place");
}

TEST_P(KernelSuite, AddGivesOneRowToEveryRow) {
  std::mt19937 random(5);
  for (const std::int64_t width : {1, 33, 192}) {
    const Matrix bias = RandomMatrix(1, width, random);
    const Matrix b = RandomMatrix(3, width, random);
    Matrix out = b;
    ops_->Add({bias.view(), out.view()}, stream_);
    Finish();
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t k = 0; k < width; ++k) {
        ASSERT_EQ(BitsOf(out.at(t, k)), BitsOf(b.at(t, k) + bias.at(0, k)));
      }
    }
  }
}

TEST_P(KernelSuite, AddIsOneRoundedSum) {
  std::mt19937 random(4);
  for (const std::int64_t width : {1, 8, 33, 192}) {
    const Matrix a = RandomMatrix(3, width, random);
    const Matrix b = RandomMatrix(3, width, random);
    Matrix out = b;
    ops_->Add({a.view(), out.view()}, stream_);
    Finish();
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t k = 0; k < width; ++k) {
        ASSERT_EQ(BitsOf(out.at(t, k)), BitsOf(b.at(t, k) + a.at(t, k)));
      }
    }
  }
}

TEST_P(KernelSuite, SiluMulIsCloseToDoubleAndEqualToTheReference) {
  std::mt19937 random(5);
  for (const std::int64_t width : {1, 7, 32, 65, 1536}) {
    const Matrix in = RandomMatrix(3, 2 * width, random, 20.0f);
    Matrix out(3, width);
    Matrix wanted(3, width);
    ops_->SiluMul({in.view(), out.view()}, stream_);
    reference_->SiluMul({in.view(), wanted.view()}, stream_);
    Finish();
    ExpectSameBits(out, wanted, "width " + std::to_string(width));
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t k = 0; k < width; ++k) {
        const double gate = in.at(t, k);
        const double exact = gate / (1 + std::exp(-gate)) * in.at(t, width + k);
        ASSERT_NEAR(out.at(t, k), exact, 4e-7 * std::abs(exact) + 1e-30);
      }
    }
  }
}

TEST_P(KernelSuite, ABadRowStaysBadAndStaysAlone) {
  std::mt19937 random(6);
  Matrix in = RandomMatrix(3, 64, random);
  const Matrix weight = RandomMatrix(1, 64, random);
  in.at(1, 40) = kNan;
  Matrix out(3, 64);
  ops_->RmsNorm({in.view(), weight.data, 1e-5f, out.view()}, stream_);
  Finish();
  for (std::int64_t k = 0; k < 64; ++k) {
    EXPECT_TRUE(std::isfinite(out.at(0, k)));
    EXPECT_TRUE(std::isnan(out.at(1, k)));
    EXPECT_TRUE(std::isfinite(out.at(2, k)));
  }
}

TEST_P(KernelSuite, NoRowsAreNoWork) {
  Matrix none(0, 64);
  const std::vector<float> weight(64, 1.0f);
  ops_->RmsNorm({none.view(), weight, 1e-5f, none.view()}, stream_);
  ops_->Add({none.view(), none.view()}, stream_);
  Finish();
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelSuite, testing::ValuesIn(Backends()), PrintName);

}  // namespace
}  // namespace pagoda::kernels
