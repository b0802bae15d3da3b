#include <cmath>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

float Rounded(float x) { return base::FloatFromBf16(base::Bf16FromFloat(x)); }

class GemmTest : public CudaTest {
 protected:
  Matrix Multiply(const Matrix& x, const OwnedWeight& weight, const Matrix* before = nullptr) {
    Matrix out(x.rows, weight.get()->plan.num_outputs);
    if (before != nullptr) out = *before;
    ops_->Matmul({.x = x.view(),
                  .weight = weight.get(),
                  .out = out.view(),
                  .output = before != nullptr ? MatmulOutput::kAdd : MatmulOutput::kStore,
                  .row_adapters = {}},
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

TEST_F(GemmTest, AProductIsCloseToDoubleFromBothSidesForEveryFormat) {
  for (const ElementType format : kAllElementTypes) {
    std::mt19937 random(11);
    const std::int64_t k = WholeBlocks(format, 320);
    const SourceWeight source = RandomWeight(format, 70, k, random);
    const Matrix x = RandomMatrix(5, k, random);
    const OwnedWeight weight({source}, WeightRole::kDown, ActivationType::kBf16, *ops_);
    const Matrix out = Multiply(x, weight);
    const std::vector<float> w = source.Widened();
    double against_rounded = 0;
    double against_exact = 0;
    for (std::int64_t m = 0; m < x.rows; ++m) {
      for (std::int64_t n = 0; n < source.rows; ++n) {
        double exact = 0, rounded = 0, x_norm = 0, w_norm = 0;
        for (std::int64_t i = 0; i < k; ++i) {
          const float b = w[static_cast<std::size_t>(n * k + i)];
          exact += double{x.at(m, i)} * b;
          rounded += double{Rounded(x.at(m, i))} * Rounded(b);
          x_norm += double{x.at(m, i)} * x.at(m, i);
          w_norm += double{b} * b;
        }
        const double norm = std::sqrt(x_norm * w_norm);
        against_rounded = std::max(against_rounded, std::abs(out.at(m, n) - rounded) / norm);
        against_exact = std::max(against_exact, std::abs(out.at(m, n) - exact) / norm);
      }
    }
    EXPECT_LE(against_rounded, 1e-6) << Name(format);
    EXPECT_GE(against_rounded, 1e-9) << Name(format);
    EXPECT_LE(against_exact, 3e-3) << Name(format);
    EXPECT_GE(against_exact, 1e-5) << Name(format);
  }
}

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

TEST_F(GemmTest, ARowHasTheSameBitsInEveryBatchOf1To130) {
  std::mt19937 random(13);
  const OwnedWeight weight = Weight(40, 96, random);
  const Matrix x = RandomMatrix(130, 96, random);
  const Matrix few = Launch(KernelId::kGemmFewRows, x, weight);
  const Matrix many = Launch(KernelId::kGemmManyRows, x, weight);
  ExpectSameBits(few, many, "forms");
  for (std::int64_t rows = 1; rows <= 130; ++rows) {
    ExpectSameBits(Multiply(RowsOf(x, 130 - rows, rows), weight), RowsOf(many, 130 - rows, rows),
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

TEST_F(GemmTest, AddingOutputIsOneMoreRoundedSum) {
  std::mt19937 random(15);
  const OwnedWeight weight = Weight(45, 64, random);
  const Matrix x = RandomMatrix(19, 64, random);
  const Matrix before = RandomMatrix(19, 45, random);
  const Matrix stored = Multiply(x, weight);
  const Matrix added = Multiply(x, weight, &before);
  for (std::int64_t m = 0; m < 19; ++m) {
    for (std::int64_t n = 0; n < 45; ++n) {
      ASSERT_EQ(BitsOf(added.at(m, n)), BitsOf(before.at(m, n) + stored.at(m, n)));
    }
  }
}

TEST_F(GemmTest, PartsPackedTogetherGiveTheSameBitsAsApart) {
  std::mt19937 random(16);
  const std::vector<SourceWeight> parts = {RandomWeight(ElementType::kQ4_1, 40, 96, random),
                                           RandomWeight(ElementType::kQ8_0, 7, 96, random),
                                           RandomWeight(ElementType::kF16, 64, 96, random)};
  const Matrix x = RandomMatrix(6, 96, random);
  const Matrix together =
      Multiply(x, OwnedWeight(parts, WeightRole::kQkv, ActivationType::kBf16, *ops_));
  std::int64_t first = 0;
  for (const SourceWeight& part : parts) {
    const Matrix alone =
        Multiply(x, OwnedWeight({part}, WeightRole::kDown, ActivationType::kBf16, *ops_));
    for (std::int64_t m = 0; m < x.rows; ++m) {
      for (std::int64_t n = 0; n < part.rows; ++n) {
        ASSERT_EQ(BitsOf(together.at(m, first + n)), BitsOf(alone.at(m, n)));
      }
    }
    first += part.rows;
  }
}

TEST_F(GemmTest, NonFiniteActivationsMakeTheirWholeRowNonFiniteAndNoOther) {
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t rows : {3, 20}) {
      std::mt19937 random(17);
      const OwnedWeight weight = Weight(40, 96, random);
      Matrix x = RandomMatrix(rows, 96, random);
      x.at(1, 70) = bad;
      const Matrix out = Multiply(x, weight);
      for (std::int64_t m = 0; m < rows; ++m) {
        for (std::int64_t n = 0; n < 40; ++n) {
          EXPECT_EQ(std::isfinite(out.at(m, n)), m != 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels::cuda
