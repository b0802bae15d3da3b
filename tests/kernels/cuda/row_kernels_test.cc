#include <algorithm>

#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::int64_t kWidths[] = {1, 7, 32, 33, 100, 576, 1030};

TEST_F(CudaTest, EmbeddingIsTheRowRoundedToBf16WhateverTheFormat) {
  for (const ElementType format : kAllElementTypes) {
    std::mt19937 random(1);
    const std::int64_t columns = WholeBlocks(format, 96);
    const SourceWeight source = RandomWeight(format, 7, columns, random);
    const OwnedWeight table({source}, WeightRole::kEmbedding, ActivationType::kBf16, *ops_);
    const std::vector<float> rows = source.Widened();
    const std::vector<base::TokenId> tokens = {6, 0, 3, 3, 1};
    Matrix out(5, columns);
    ops_->Embed({table.get(), tokens, out.view()}, stream_);
    Finish();
    Matrix wanted(5, columns);
    for (std::int64_t t = 0; t < 5; ++t) {
      for (std::int64_t k = 0; k < columns; ++k) {
        wanted.at(t, k) = base::FloatFromBf16(base::Bf16FromFloat(
            rows[static_cast<std::size_t>(tokens[static_cast<std::size_t>(t)] * columns + k)]));
      }
    }
    ExpectSameBits(out, wanted, Name(format));
  }
}

TEST_F(CudaTest, RmsNormHasTheReferencesBitsUnderEverySchedule) {
  for (const Schedule& schedule : HostileSchedules()) {
    device_->SetSchedule(schedule);
    std::mt19937 random(2);
    for (const std::int64_t width : kWidths) {
      const Matrix in = RandomMatrix(6, width, random);
      const Matrix weight = RandomMatrix(1, width, random);
      Matrix out(6, width), wanted(6, width), in_place = in;
      ops_->RmsNorm({in.view(), weight.data, 1e-5f, out.view()}, stream_);
      ops_->RmsNorm({in_place.view(), weight.data, 1e-5f, in_place.view()}, stream_);
      Finish();
      reference_->RmsNorm({in.view(), weight.data, 1e-5f, wanted.view()}, stream_);
      ExpectSameBits(out, wanted, Describe(schedule));
      ExpectSameBits(in_place, wanted, "in place");
    }
  }
}

TEST_F(CudaTest, AddAndSiluMulHaveTheReferencesBits) {
  std::mt19937 random(3);
  for (const std::int64_t width : kWidths) {
    const Matrix addend = RandomMatrix(3, width, random);
    const Matrix bias = RandomMatrix(1, width, random);
    const Matrix gate_up = RandomMatrix(3, 2 * width, random, 20.0f);
    Matrix found = RandomMatrix(3, width, random);
    Matrix wanted = found, found_silu(3, width), wanted_silu(3, width);
    for (Ops* const ops : {ops_.get(), reference_.get()}) {
      const bool tested = ops == ops_.get();
      Matrix& sum = tested ? found : wanted;
      ops->Add({addend.view(), sum.view()}, stream_);
      ops->Add({bias.view(), sum.view()}, stream_);
      ops->SiluMul({gate_up.view(), (tested ? found_silu : wanted_silu).view()}, stream_);
    }
    Finish();
    ExpectSameBits(found, wanted, "sums of width " + std::to_string(width));
    ExpectSameBits(found_silu, wanted_silu, "silu of width " + std::to_string(width));
  }
}

TEST_F(CudaTest, ABadRowStaysBadAndStaysAlone) {
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

TEST_F(CudaTest, NoRowsAreNoWork) {
  Matrix none(0, 64), none_wide(0, 128);
  const std::vector<float> weight(64, 1.0f);
  ops_->RmsNorm({none.view(), weight, 1e-5f, none.view()}, stream_);
  ops_->Add({none.view(), none.view()}, stream_);
  ops_->SiluMul({none_wide.view(), none.view()}, stream_);
  Finish();
  EXPECT_EQ(device_->counters().ctas, 0u);
}

}  // namespace
}  // namespace pagoda::kernels::cuda
