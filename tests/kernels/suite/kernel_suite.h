#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "gtest/gtest.h"
#include "kernels/dequantize.h"
#include "kernels/ops.h"
#include "kernels/quant_block.h"
#include "kernels/reference/reference_ops.h"

// The promises of kernels/README.md as tests, the same for every backend. A binary links the suite
// and defines Backends(). Views are hostile: odd strides, exact-size buffers, NaN in every byte
// that nobody owns.
namespace pagoda::kernels {

struct Backend {
  std::string name;
  std::function<std::unique_ptr<Ops>()> make;
  std::vector<KeyOrder> key_orders = {KeyOrder::kTokenMajor, KeyOrder::kDimPairMajor};
  std::int32_t gap_bytes = 52;  // between the blocks of a pool: as odd as the backend bears
};
std::vector<Backend> Backends();
inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

inline float RoundedToBf16(float x) { return base::FloatFromBf16(base::Bf16FromFloat(x)); }

class KernelSuite : public testing::TestWithParam<Backend> {
 protected:
  KernelSuite() : ops_(GetParam().make()), reference_(MakeReferenceOps()) {}
  void Finish() { ASSERT_TRUE(ops_->device().Await(ops_->device().Record(stream_)).ok()); }

  // Whether weights and the inputs of matrix products are rounded to bf16.
  bool RoundsToBf16() const { return ops_->capabilities().pack_layout == PackLayout::kBf16Rows; }
  // What is left of a weight, or of an input of a product, that comes as float.
  float AsTaken(float x) const { return RoundsToBf16() ? RoundedToBf16(x) : x; }
  std::vector<ActivationType> Activations() const {
    if (RoundsToBf16()) return {ActivationType::kBf16};
    return {ActivationType::kF32, ActivationType::kInt8};
  }

  std::unique_ptr<Ops> ops_;        // under test
  std::unique_ptr<Ops> reference_;  // the plain loops
  Stream stream_;
};

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Bits, with every NaN the same.
inline std::uint32_t BitsOf(float value) {
  return std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value);
}

// Rows apart by `gap` NaNs; the buffer ends with the last element of the last row.
struct Matrix {
  Matrix(std::int64_t num_rows, std::int64_t num_columns, std::int64_t gap = 3)
      : rows(num_rows), columns(num_columns), stride(num_columns + gap) {
    data.assign(static_cast<std::size_t>(rows == 0 ? 0 : (rows - 1) * stride + columns), kNan);
  }
  MatrixView view() { return {data.data(), rows, columns, stride}; }
  ConstMatrixView view() const { return {data.data(), rows, columns, stride}; }
  float& at(std::int64_t r, std::int64_t c) {
    return data[static_cast<std::size_t>(r * stride + c)];
  }
  float at(std::int64_t r, std::int64_t c) const {
    return data[static_cast<std::size_t>(r * stride + c)];
  }

  std::int64_t rows, columns, stride;
  std::vector<float> data;
};

inline Matrix RandomMatrix(std::int64_t rows, std::int64_t columns, std::mt19937& random,
                           float scale = 1.0f) {
  Matrix matrix(rows, columns);
  std::normal_distribution<float> normal(0.0f, scale);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) matrix.at(r, c) = normal(random);
  }
  return matrix;
}

inline Matrix RowsOf(const Matrix& from, std::int64_t first, std::int64_t count) {
  Matrix part(count, from.columns, 5);
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t c = 0; c < from.columns; ++c) part.at(r, c) = from.at(first + r, c);
  }
  return part;
}

// Every element the same bits, and nothing written between rows.
inline void ExpectSameBits(const Matrix& found, const Matrix& wanted, const std::string& what) {
  ASSERT_EQ(found.rows, wanted.rows);
  ASSERT_EQ(found.columns, wanted.columns);
  for (std::int64_t r = 0; r < found.rows; ++r) {
    for (std::int64_t c = 0; c < found.columns; ++c) {
      ASSERT_EQ(BitsOf(found.at(r, c)), BitsOf(wanted.at(r, c)))
          << what << " at " << r << ", " << c << ": " << found.at(r, c) << " and "
          << wanted.at(r, c);
    }
    for (std::int64_t c = found.columns; r + 1 < found.rows && c < found.stride; ++c) {
      ASSERT_TRUE(std::isnan(found.at(r, c))) << what << ": gap written after row " << r;
    }
  }
}

// One source tensor with random content, rows adjacent.
struct SourceWeight {
  TensorView view() const { return TensorView::Contiguous(bytes.data(), type, rows, columns); }
  // The whole as fp32.
  std::vector<float> Widened() const {
    std::vector<float> out(static_cast<std::size_t>(rows * columns));
    for (std::int64_t n = 0; n < rows; ++n) {
      DequantizeRow(type, view().Row(n),
                    std::span(out).subspan(static_cast<std::size_t>(n * columns),
                                           static_cast<std::size_t>(columns)));
    }
    return out;
  }

  ElementType type;
  std::int64_t rows, columns;
  std::vector<std::byte> bytes;
};

// A finite f16 of magnitude about 2^-7 to 2^-3.
inline std::uint16_t RandomHalf(std::mt19937& random) {
  return static_cast<std::uint16_t>((random() & 0x83ffu) | ((8u + random() % 4u) << 10));
}

// Random bytes, with ordinary numbers wherever a float stands.
inline SourceWeight RandomWeight(ElementType type, std::int64_t rows, std::int64_t columns,
                                 std::mt19937& random) {
  SourceWeight made{type, rows, columns, {}};
  made.bytes.resize(static_cast<std::size_t>(rows * RowBytes(type, columns)));
  for (std::byte& byte : made.bytes) byte = static_cast<std::byte>(random());
  const auto put = [&made](std::size_t at, auto value) {
    std::memcpy(&made.bytes[at], &value, sizeof(value));
  };
  const auto unit = static_cast<std::size_t>(BlockBytes(type));
  for (std::size_t at = 0; at < made.bytes.size(); at += unit) {
    const std::uint16_t half = RandomHalf(random);
    if (type == ElementType::kF32) {
      put(at, base::FloatFromF16(half) * 1.0000001f);
    } else if (type == ElementType::kBf16) {
      put(at, base::Bf16FromFloat(base::FloatFromF16(half)));
    } else {
      put(type == ElementType::kQ6_K ? at + unit - 2 : at, half);
    }
    if (HasMinimum(type)) put(at + 2, RandomHalf(random));
  }
  return made;
}

// Parts packed for one backend, 64-byte aligned.
class OwnedWeight {
 public:
  OwnedWeight(const std::vector<SourceWeight>& parts, WeightRole role, ActivationType activation,
              Ops& ops) {
    std::vector<PartShape> shapes;
    std::vector<TensorView> views;
    for (const SourceWeight& part : parts) {
      shapes.push_back({part.type, part.rows, part.columns});
      views.push_back(part.view());
    }
    auto plan = PlanPack(shapes, role, {}, {ops.capabilities().pack_layout, activation});
    EXPECT_TRUE(plan.ok()) << plan.status();
    auto memory = ops.device().Allocate(plan->bytes);
    EXPECT_TRUE(memory.ok());
    memory_ = *std::move(memory);
    Pack(*plan, views, {memory_.data(), static_cast<std::size_t>(plan->bytes)});
    packed_ = {*std::move(plan), memory_.data()};
  }
  const PackedWeight* get() const { return &packed_; }

 private:
  DeviceMemory memory_;
  PackedWeight packed_;
};

// `columns`, or as many more as the format needs to fill its blocks.
inline std::int64_t WholeBlocks(ElementType format, std::int64_t columns) {
  return base::RoundUp(columns, BlockColumns(format));
}

inline std::string PrintName(const testing::TestParamInfo<Backend>& info) {
  return info.param.name;
}

}  // namespace pagoda::kernels
