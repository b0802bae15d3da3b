#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

class GemmTest : public CudaTest {
 protected:
  Matrix Multiply(const Matrix& x, const OwnedWeight& weight) {
    Matrix out(x.rows, weight.get()->plan.num_outputs);
    ops_->Matmul({.x = x.view(), .weight = weight.get(), .out = out.view(), .row_adapters = {}},
                 stream_);
    Finish();
    return out;
  }

  // One form by name, whatever the backend would choose for so many rows.
  Matrix Launch(KernelId id, const Matrix& x, const OwnedWeight& weight) {
    const GemmShape& shape = id == KernelId::kGemmFewRows ? kGemmFewRows : kGemmManyRows;
    const auto columns = static_cast<std::size_t>(x.columns);
    // 16-byte aligned rows, with NaNs between them.
    const std::size_t stride = columns + 8;
    std::vector<std::uint16_t> rounded(static_cast<std::size_t>(x.rows) * stride, 0xffff);
    for (std::int64_t r = 0; r < x.rows; ++r) {
      for (std::size_t k = 0; k < columns; ++k) {
        rounded[static_cast<std::size_t>(r) * stride + k] =
            base::Bf16FromFloat(x.at(r, static_cast<std::int64_t>(k)));
      }
    }
    Matrix out(x.rows, weight.get()->plan.num_outputs);
    const GemmArguments arguments = {
        .x = rounded.data(),
        .w = reinterpret_cast<const std::uint16_t*>(weight.get()->data),
        .out = {out.view().data, out.stride},
        .x_stride = static_cast<std::int64_t>(stride),
        .rows = static_cast<std::int32_t>(x.rows),
        .outputs = static_cast<std::int32_t>(out.columns),
        .inputs = static_cast<std::int32_t>(x.columns)};
    device_->Launch(
        {.kernel = static_cast<std::uint16_t>(id),
         .grid = {static_cast<std::uint32_t>(
                      base::DivUp<std::int64_t>(out.columns, shape.output_tile)),
                  static_cast<std::uint32_t>(base::DivUp<std::int64_t>(x.rows, shape.row_tile)), 1},
         .num_threads = GemmShape::kThreads,
         .shared_bytes = shape.SharedBytes(),
         .arguments = std::as_bytes(std::span(&arguments, 1))},
        stream_);
    Finish();
    return out;
  }

  OwnedWeight Weight(std::int64_t outputs, std::int64_t inputs, std::mt19937& random) {
    return {{RandomWeight(ElementType::kBf16, outputs, inputs, random)},
            WeightRole::kDown,
            ActivationType::kBf16,
            *ops_};
  }
};

// K of 32 and 96 leave half a stage empty; N of 1 and 65 most of a tile.
TEST_F(GemmTest, BothFormsGiveTheSameBitsForEveryRowCountAndRaggedShape) {
  for (const auto& [outputs, inputs] : {std::pair{1, 32}, {65, 96}, {64, 64}, {100, 224}}) {
    std::mt19937 random(12);
    const OwnedWeight weight = Weight(outputs, inputs, random);
    const Matrix x = RandomMatrix(20, inputs, random);
    const Matrix whole = Launch(KernelId::kGemmManyRows, x, weight);
    for (const std::int64_t count : {1, 7, 8, 9, 20}) {
      ExpectSameBits(Launch(KernelId::kGemmFewRows, RowsOf(x, 0, count), weight),
                     RowsOf(whole, 0, count), "few rows, " + std::to_string(count));
      ExpectSameBits(Launch(KernelId::kGemmManyRows, RowsOf(x, 3, count % 18), weight),
                     RowsOf(whole, 3, count % 18), "many rows, " + std::to_string(count));
    }
  }
}

TEST_F(GemmTest, ARowHasTheSameBitsInEveryBatchOf1To130InBothForms) {
  std::mt19937 random(13);
  const OwnedWeight weight = Weight(40, 96, random);
  const Matrix x = RandomMatrix(130, 96, random);
  const Matrix wanted = Launch(KernelId::kGemmManyRows, x, weight);
  for (std::int64_t rows = 1; rows <= 130; ++rows) {
    // The last ones, so that a row stands at another place of its tile each time.
    const Matrix taken = RowsOf(x, 130 - rows, rows);
    const Matrix theirs = RowsOf(wanted, 130 - rows, rows);
    const std::string what = std::to_string(rows) + " rows";
    ExpectSameBits(Launch(KernelId::kGemmFewRows, taken, weight), theirs, what + ", few");
    ExpectSameBits(Launch(KernelId::kGemmManyRows, taken, weight), theirs, what + ", many");
  }
}

TEST_F(GemmTest, TheFormThatTheBackendChoosesHasTheBitsOfBoth) {
  std::mt19937 random(15);
  const OwnedWeight weight = Weight(40, 96, random);
  const Matrix x = RandomMatrix(66, 96, random);
  const Matrix wanted = Launch(KernelId::kGemmManyRows, x, weight);
  for (const std::int64_t rows : {1, kFewRows, kFewRows + 1, 66}) {
    ExpectSameBits(Multiply(RowsOf(x, 66 - rows, rows), weight), RowsOf(wanted, 66 - rows, rows),
                   std::to_string(rows) + " rows");
  }
}

TEST_F(GemmTest, BothFormsStandEverySchedule) {
  std::mt19937 random(14);
  const OwnedWeight weight = Weight(130, 448, random);
  const Matrix x = RandomMatrix(70, 448, random);
  const Matrix wanted = Launch(KernelId::kGemmManyRows, x, weight);
  for (const Schedule& schedule : HostileSchedules()) {
    device_->SetSchedule(schedule);
    ExpectSameBits(Launch(KernelId::kGemmManyRows, x, weight), wanted, Describe(schedule));
    ExpectSameBits(Launch(KernelId::kGemmFewRows, RowsOf(x, 60, 9), weight), RowsOf(wanted, 60, 9),
                   Describe(schedule));
  }
  EXPECT_EQ(device_->counters().bank_conflicts, 0u);
}

}  // namespace
}  // namespace pagoda::kernels::cuda
