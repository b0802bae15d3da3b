#include <cmath>

#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {
namespace {

constexpr ActivationType kActivations[] = {ActivationType::kF32, ActivationType::kInt8};

std::string Case(ElementType format, ActivationType activation) {
  return std::string(Name(format)) + " with " + Name(activation);
}

class Product {
 public:
  Product(std::vector<SourceWeight> parts, WeightRole role, ActivationType activation, Ops& ops)
      : parts_(std::move(parts)), weight_(parts_, role, activation, ops), ops_(ops) {}

  Matrix Run(const Matrix& x) const {
    Matrix out(x.rows, weight_.get()->plan.num_outputs);
    ops_.Matmul({.x = x.view(), .weight = weight_.get(), .out = out.view(), .row_adapters = {}},
                Stream{});
    EXPECT_TRUE(ops_.device().Await(ops_.device().Record(Stream{})).ok());
    return out;
  }
  const OwnedWeight& weight() const { return weight_; }

 private:
  std::vector<SourceWeight> parts_;
  OwnedWeight weight_;
  Ops& ops_;
};

// Largest error over the product of norms, against double arithmetic on the widened weights.
double ErrorAgainstDouble(const Matrix& x, const SourceWeight& source, const Matrix& out) {
  const std::vector<float> w = source.Widened();
  double largest = 0;
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t n = 0; n < source.rows; ++n) {
      double exact = 0;
      double x_norm = 0;
      double w_norm = 0;
      for (std::int64_t k = 0; k < x.columns; ++k) {
        const double a = x.at(m, k);
        const double b = w[static_cast<std::size_t>(n * x.columns + k)];
        exact += a * b;
        x_norm += a * a;
        w_norm += b * b;
      }
      largest = std::max(largest, std::abs(out.at(m, n) - exact) / std::sqrt(x_norm * w_norm));
    }
  }
  return largest;
}

TEST_P(KernelSuite, MatmulIsCloseToDoubleFromBothSides) {
  for (const ActivationType activation : kActivations) {
    for (const ElementType format : kAllElementTypes) {
      std::mt19937 random(11);
      const std::int64_t k = WholeBlocks(format, 320);
      const SourceWeight source = RandomWeight(format, 70, k, random);
      const Matrix x = RandomMatrix(5, k, random);
      const Product product({source}, WeightRole::kDown, activation, *ops_);
      const double error = ErrorAgainstDouble(x, source, product.Run(x));
      const bool coarse = activation == ActivationType::kInt8 && IsQuantized(format);
      EXPECT_LE(error, coarse ? 1.2e-2 : 1e-6) << Case(format, activation);
      EXPECT_GE(error, coarse ? 1e-4 : 1e-9) << Case(format, activation);
    }
  }
}

TEST_P(KernelSuite, MatmulEqualsTheReferenceForEveryFormatAndShape) {
  for (const ActivationType activation : kActivations) {
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

TEST_P(KernelSuite, ARowOfAProductDoesNotDependOnItsCompany) {
  for (const ActivationType activation : kActivations) {
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
  for (const ActivationType activation : kActivations) {
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
  std::mt19937 random(15);
  const Product product({RandomWeight(ElementType::kQ4_1, 45, 64, random)}, WeightRole::kDown,
                        ActivationType::kInt8, *ops_);
  const Matrix x = RandomMatrix(9, 64, random);
  const Matrix before = RandomMatrix(9, 45, random);
  const Matrix stored = product.Run(x);
  Matrix out = before;
  ops_->Matmul({.x = x.view(),
                .weight = product.weight().get(),
                .out = out.view(),
                .output = MatmulOutput::kAdd,
                .row_adapters = {}},
               stream_);
  Finish();
  for (std::int64_t m = 0; m < 9; ++m) {
    for (std::int64_t n = 0; n < 45; ++n) {
      ASSERT_EQ(BitsOf(out.at(m, n)), BitsOf(before.at(m, n) + stored.at(m, n)));
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
  for (const ActivationType activation : kActivations) {
    ExpectSameBits(Product({source}, WeightRole::kDown, activation, *ops_).Run(x),
                   Product({source}, WeightRole::kDown, activation, *reference_).Run(x),
                   Name(activation));
  }
}

TEST_P(KernelSuite, NonFiniteActivationsMakeTheirWholeRowNonFiniteAndNoOther) {
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    for (const ActivationType activation : kActivations) {
      std::mt19937 random(17);
      const SourceWeight source = RandomWeight(ElementType::kQ8_0, 40, 96, random);
      Matrix x = RandomMatrix(3, 96, random);
      x.at(1, 70) = bad;
      const Matrix out = Product({source}, WeightRole::kDown, activation, *ops_).Run(x);
      for (std::int64_t n = 0; n < 40; ++n) {
        EXPECT_TRUE(std::isfinite(out.at(0, n)));
        EXPECT_FALSE(std::isfinite(out.at(1, n)));
        EXPECT_TRUE(std::isfinite(out.at(2, n)));
      }
    }
  }
}

TEST_P(KernelSuite, CompositeOpsEqualTheirParts) {
  std::mt19937 random(18);
  const Matrix in = RandomMatrix(6, 64, random);
  const Matrix norm_weight = RandomMatrix(1, 64, random);
  const OwnedWeight weight({RandomWeight(ElementType::kQ4_1, 96, 64, random),
                            RandomWeight(ElementType::kQ4_1, 96, 64, random)},
                           WeightRole::kGateUp, ActivationType::kInt8, *ops_);
  Matrix normed(6, 64), product(6, 192), wanted(6, 96), found(6, 96), found_product(6, 192);
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

}  // namespace
}  // namespace pagoda::kernels
