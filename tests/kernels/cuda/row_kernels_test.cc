#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::int64_t kWidths[] = {1, 7, 32, 33, 100, 576, 1030};

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
