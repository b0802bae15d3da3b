#include <cmath>

#include "tests/kernels/suite/product.h"

namespace pagoda::kernels {
namespace {

// Largest error over the product of norms, against double arithmetic on the inputs as `taken` makes
// them.
template <typename Taken>
double ErrorAgainstDouble(const Matrix& x, const SourceWeight& source, const Matrix& out,
                          const Taken& taken) {
  const std::vector<float> w = source.Widened();
  double largest = 0;
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t n = 0; n < source.rows; ++n) {
      double exact = 0;
      double x_norm = 0;
      double w_norm = 0;
      for (std::int64_t k = 0; k < x.columns; ++k) {
        const double a = taken(x.at(m, k));
        const double b = taken(w[static_cast<std::size_t>(n * x.columns + k)]);
        exact += a * b;
        x_norm += a * a;
        w_norm += b * b;
      }
      largest = std::max(largest, std::abs(out.at(m, n) - exact) / std::sqrt(x_norm * w_norm));
    }
  }
  return largest;
}

// Rounding to bf16 is judged apart: 3e-3 by itself, and what is left as fp32.
TEST_P(KernelSuite, MatmulIsCloseToDoubleFromBothSides) {
  for (const ActivationType activation : Activations()) {
    for (const ElementType format : kAllElementTypes) {
      std::mt19937 random(11);
      const std::int64_t k = WholeBlocks(format, 320);
      const SourceWeight source = RandomWeight(format, 70, k, random);
      const Matrix x = RandomMatrix(5, k, random);
      const Product product({source}, WeightRole::kDown, activation, *ops_);
      const Matrix out = product.Run(x);
      const double error =
          ErrorAgainstDouble(x, source, out, [this](float value) { return AsTaken(value); });
      const bool coarse = activation == ActivationType::kInt8 && IsQuantized(format);
      EXPECT_LE(error, coarse ? 1.2e-2 : 1e-6) << Case(format, activation);
      EXPECT_GE(error, coarse ? 1e-4 : 1e-9) << Case(format, activation);
      if (!RoundsToBf16()) continue;
      const double with_rounding =
          ErrorAgainstDouble(x, source, out, [](float value) { return value; });
      EXPECT_LE(with_rounding, 3e-3) << Case(format, activation);
      EXPECT_GE(with_rounding, 1e-5) << Case(format, activation);
    }
  }
}

TEST_P(KernelSuite, ARowOfAProductDoesNotDependOnItsCompany) {
  for (const ActivationType activation : Activations()) {
    for (const ElementType format : kAllElementTypes) {
      std::mt19937 random(13);
      const std::int64_t k = WholeBlocks(format, 192);
      const SourceWeight source = RandomWeight(format, 65, k, random);
      const Product product({source}, WeightRole::kDown, activation, *ops_);
      const Matrix x = RandomMatrix(37, k, random);
      const Matrix whole = product.Run(x);
      for (const std::int64_t count : {1, 2, 5, 8, 16}) {
        for (std::int64_t first = 0; first + count <= 37; first += count + 3) {
          ExpectSameBits(product.Run(RowsOf(x, first, count)), RowsOf(whole, first, count),
                         Case(format, activation));
        }
      }
    }
  }
}

TEST_P(KernelSuite, PartsPackedTogetherGiveTheSameBitsAsApart) {
  std::mt19937 random(14);
  const std::vector<SourceWeight> parts = {RandomWeight(ElementType::kQ4_1, 40, 96, random),
                                           RandomWeight(ElementType::kQ8_0, 7, 96, random),
                                           RandomWeight(ElementType::kF16, 64, 96, random)};
  const Matrix x = RandomMatrix(6, 96, random);
  for (const ActivationType activation : Activations()) {
    const Matrix together = Product(parts, WeightRole::kQkv, activation, *ops_).Run(x);
    std::int64_t first = 0;
    for (const SourceWeight& part : parts) {
      const Matrix alone = Product({part}, WeightRole::kDown, activation, *ops_).Run(x);
      for (std::int64_t m = 0; m < x.rows; ++m) {
        for (std::int64_t n = 0; n < part.rows; ++n) {
          ASSERT_EQ(BitsOf(together.at(m, first + n)), BitsOf(alone.at(m, n)));
        }
      }
      first += part.rows;
    }
  }
}

TEST_P(KernelSuite, AddingOutputIsOneMoreRoundedSum) {
  for (const std::int64_t rows : {9, 19}) {
    std::mt19937 random(15);
    const Product product({RandomWeight(ElementType::kQ4_1, 45, 64, random)}, WeightRole::kDown,
                          Activations().back(), *ops_);
    const Matrix x = RandomMatrix(rows, 64, random);
    const Matrix before = RandomMatrix(rows, 45, random);
    const Matrix stored = product.Run(x);
    Matrix out = before;
    ops_->Matmul({.x = x.view(),
                  .weight = product.weight().get(),
                  .out = out.view(),
                  .output = MatmulOutput::kAdd,
                  .row_adapters = {}},
                 stream_);
    Finish();
    for (std::int64_t m = 0; m < rows; ++m) {
      for (std::int64_t n = 0; n < 45; ++n) {
        ASSERT_EQ(BitsOf(out.at(m, n)), BitsOf(before.at(m, n) + stored.at(m, n)));
      }
    }
  }
}

TEST_P(KernelSuite, NonFiniteActivationsMakeTheirWholeRowNonFiniteAndNoOther) {
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    for (const ActivationType activation : Activations()) {
      std::mt19937 random(17);
      const SourceWeight source = RandomWeight(ElementType::kQ8_0, 40, 96, random);
      const Product product({source}, WeightRole::kDown, activation, *ops_);
      for (const std::int64_t rows : {3, 20}) {
        Matrix x = RandomMatrix(rows, 96, random);
        x.at(1, 70) = bad;
        const Matrix out = product.Run(x);
        for (std::int64_t m = 0; m < rows; ++m) {
          for (std::int64_t n = 0; n < 40; ++n) EXPECT_EQ(std::isfinite(out.at(m, n)), m != 1);
        }
      }
    }
  }
}

TEST_P(KernelSuite, CompositeOpsEqualTheirParts) {
  for (const std::int64_t rows : {6, 20}) {
    std::mt19937 random(18);
    const Matrix in = RandomMatrix(rows, 64, random);
    const Matrix norm_weight = RandomMatrix(1, 64, random);
    const OwnedWeight weight({RandomWeight(ElementType::kQ4_1, 96, 64, random),
                              RandomWeight(ElementType::kQ4_1, 96, 64, random)},
                             WeightRole::kGateUp, Activations().back(), *ops_);
    Matrix normed(rows, 64), product(rows, 192), wanted(rows, 96), found(rows, 96),
        found_product(rows, 192);
    const RmsNormParams norm = {in.view(), norm_weight.data, 1e-5f, normed.view()};
    const MatmulParams matmul = {
        .x = normed.view(), .weight = weight.get(), .out = product.view(), .row_adapters = {}};
    ops_->RmsNorm(norm, stream_);
    ops_->Matmul(matmul, stream_);
    ops_->SiluMul({product.view(), wanted.view()}, stream_);
    MatmulParams fused = matmul;
    fused.out = found_product.view();
    ops_->NormMatmul({norm, fused}, stream_);
    Finish();
    ExpectSameBits(found_product, product, "norm and matmul");
    ops_->GateUp({norm, fused, found.view()}, stream_);
    Finish();
    ExpectSameBits(found, wanted, "gate, up and activation");
    ops_->RmsNorm(norm, stream_);
    ops_->GateUp({std::nullopt, fused, found.view()}, stream_);
    Finish();
    ExpectSameBits(found, wanted, "without a norm");
  }
}

}  // namespace
}  // namespace pagoda::kernels
