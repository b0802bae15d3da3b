#include "kernels/reference/quantize_row.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::kernels::reference {
namespace {

TEST(QuantizeRow, EveryElementIsWithinHalfAStep) {
  std::mt19937 random(51);
  std::normal_distribution<float> normal;
  std::vector<float> row(320);
  for (float& x : row) x = normal(random);
  const QuantizedRow quantized = QuantizeRow(row);
  double largest = 0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    const double step = quantized.scales[k / 32];
    largest = std::max(largest, std::abs(row[k] - quantized.values[k] * step) / step);
  }
  EXPECT_LE(largest, 0.5001);
  EXPECT_GE(largest, 0.45);
}

TEST(QuantizeRow, TheLargestBecomes127AndTiesGoToEven) {
  std::vector<float> row(32, 0.5f);
  row[0] = -127.0f;
  row[1] = 1.5f;
  row[2] = -2.5f;
  const QuantizedRow quantized = QuantizeRow(row);
  EXPECT_EQ(quantized.scales[0], 1.0f);
  EXPECT_EQ(quantized.values[0], -127);
  EXPECT_EQ(quantized.values[1], 2);
  EXPECT_EQ(quantized.values[2], -2);
  EXPECT_EQ(quantized.values[3], 0);
  EXPECT_EQ(quantized.sums[0], -127);
}

TEST(QuantizeRow, ZeroAndTinyBlocksAreZeroAndBadOnesAreNan) {
  std::vector<float> row(128, 0.0f);
  row[40] = 1e-35f;
  row[70] = std::numeric_limits<float>::quiet_NaN();
  row[71] = 5.0f;
  row[100] = -std::numeric_limits<float>::infinity();
  const QuantizedRow quantized = QuantizeRow(row);
  EXPECT_EQ(quantized.scales[0], 0.0f);
  EXPECT_EQ(quantized.scales[1], 0.0f);
  EXPECT_TRUE(std::isnan(quantized.scales[2]));
  EXPECT_TRUE(std::isnan(quantized.scales[3]));
  for (const std::int8_t q : quantized.values) EXPECT_EQ(q, 0);
}

}  // namespace
}  // namespace pagoda::kernels::reference
