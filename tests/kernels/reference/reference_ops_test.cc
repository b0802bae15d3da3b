#include "kernels/reference/reference_ops.h"

#include "gtest/gtest.h"

namespace pagoda::kernels {
namespace {

TEST(ReferenceOps, TakesEveryFormatAndIsDoneAtOnce) {
  const auto ops = MakeReferenceOps();
  EXPECT_EQ(ops->capabilities().backend, "reference");
  EXPECT_EQ(ops->capabilities().embeddings.size(), 11u);
  EXPECT_EQ(ops->capabilities().weights.size(), 19u);
  const Event event = ops->device().Record({});
  EXPECT_TRUE(ops->device().IsDone(event));
}

TEST(ReferenceOpsDeathTest, AWrongShapeAborts) {
  const auto ops = MakeReferenceOps();
  std::vector<float> data(64);
  const MatrixView whole = {data.data(), 2, 32, 32};
  EXPECT_DEATH(ops->Add({whole, whole.Columns(0, 31)}, {}), "columns");
}

}  // namespace
}  // namespace pagoda::kernels
