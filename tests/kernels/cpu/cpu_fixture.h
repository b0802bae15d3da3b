#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_ops.h"

namespace pagoda::kernels::cpu {

// Bits are compared: every NaN is the same, +0 and -0 are not.
inline std::uint32_t Bits(float value) {
  if (std::isnan(value)) return 0x7fc00000u;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// A matrix whose rows are apart by an odd stride, with NaN between them.
struct Matrix {
  Matrix(std::int64_t rows_in, std::int64_t columns_in)
      : rows(rows_in), columns(columns_in), stride(columns_in + 3) {
    data.assign(static_cast<std::size_t>(rows * stride), std::nanf(""));
  }
  MatrixView view() { return {data.data(), rows, columns, stride}; }
  float& at(std::int64_t r, std::int64_t c) {
    return data[static_cast<std::size_t>(r * stride + c)];
  }

  std::int64_t rows, columns, stride;
  std::vector<float> data;
};

inline void FillNormal(Matrix& matrix, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    for (std::int64_t c = 0; c < matrix.columns; ++c) matrix.at(r, c) = normal(random);
  }
}

inline void ExpectSameBits(Matrix& found, Matrix& expected) {
  for (std::int64_t r = 0; r < expected.rows; ++r) {
    for (std::int64_t c = 0; c < expected.columns; ++c) {
      ASSERT_EQ(Bits(found.at(r, c)), Bits(expected.at(r, c)))
          << "row " << r << " column " << c << ": " << found.at(r, c) << ", expected "
          << expected.at(r, c);
    }
    for (std::int64_t c = expected.columns; c < expected.stride; ++c) {
      ASSERT_TRUE(std::isnan(found.at(r, c))) << "written past row " << r;
    }
  }
}

struct Setting {
  InstructionClass instruction_class;
  int num_threads;
};

inline std::vector<Setting> AllSettings() {
  std::vector<Setting> settings;
  for (const InstructionClass available : AvailableInstructionClasses()) {
    for (const int threads : {1, 2, 3}) settings.push_back({available, threads});
  }
  return settings;
}

inline std::string SettingName(const testing::TestParamInfo<Setting>& info) {
  std::string name(Name(info.param.instruction_class));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name + "_" + std::to_string(info.param.num_threads);
}

// The CPU ops of one instruction class and number of threads.
class CpuOpsTest : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    auto ops = MakeCpuOps(
        {.num_threads = GetParam().num_threads, .instruction_class = GetParam().instruction_class});
    ASSERT_TRUE(ops.ok()) << ops.status();
    ops_ = *std::move(ops);
  }

  std::unique_ptr<Ops> ops_;
};

}  // namespace pagoda::kernels::cpu
