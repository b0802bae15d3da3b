#include "kernels/column_panels.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::kernels {
namespace {

constexpr std::int64_t kOutputs = 40;  // a full panel and a cut one
constexpr std::int64_t kInputs = 64;

// Source bytes that tell row and place in the row apart.
std::vector<std::byte> Source(ElementType type) {
  std::vector<std::byte> bytes;
  for (std::int64_t n = 0; n < kOutputs; ++n) {
    for (std::int64_t i = 0; i < RowBytes(type, kInputs); ++i) {
      bytes.push_back(static_cast<std::byte>(1 + (n * 31 + i * 7) % 255));
    }
  }
  return bytes;
}

struct Packed {
  explicit Packed(ElementType type_in) : type(type_in), source(Source(type)) {
    out.assign(static_cast<std::size_t>(2 * PanelBytes(type, kInputs)), std::byte{0});
    PackColumnPanels(TensorView::Contiguous(source.data(), type, kOutputs, kInputs), out.data());
  }
  std::byte In(std::int64_t n, std::int64_t byte) const {
    return source[static_cast<std::size_t>(n * RowBytes(type, kInputs) + byte)];
  }
  std::byte Out(std::int64_t n, std::int64_t byte_in_panel) const {
    return out[static_cast<std::size_t>(n / 32 * PanelBytes(type, kInputs) + byte_in_panel)];
  }
  ElementType type;
  std::vector<std::byte> source, out;
};

TEST(ColumnPanels, FloatsStandOutputBesideOutput) {
  for (const ElementType type : {ElementType::kF32, ElementType::kF16}) {
    const Packed packed(type);
    const std::int64_t size = BytesPerUnit(type);
    for (std::int64_t n = 0; n < kOutputs; ++n) {
      for (std::int64_t k = 0; k < kInputs; ++k) {
        for (std::int64_t b = 0; b < size; ++b) {
          ASSERT_EQ(packed.Out(n, (k * 32 + n % 32) * size + b), packed.In(n, k * size + b));
        }
      }
    }
  }
}

TEST(ColumnPanels, Bf16StandsInPairsOfInputs) {
  const Packed packed(ElementType::kBf16);
  for (std::int64_t n = 0; n < kOutputs; ++n) {
    for (std::int64_t k = 0; k < kInputs; ++k) {
      const std::int64_t at = (k / 2 * 64 + n % 32 * 2 + k % 2) * 2;
      ASSERT_EQ(packed.Out(n, at), packed.In(n, k * 2));
      ASSERT_EQ(packed.Out(n, at + 1), packed.In(n, k * 2 + 1));
    }
  }
}

TEST(ColumnPanels, QuantizedBlocksPutScalesFirstAndPayloadInFours) {
  for (const ElementType type : {ElementType::kQ4_0, ElementType::kQ4_1, ElementType::kQ8_0}) {
    const Packed packed(type);
    const std::int64_t block = BytesPerUnit(type);
    const std::int64_t scales = type == ElementType::kQ4_1 ? 2 : 1;
    for (std::int64_t n = 0; n < kOutputs; ++n) {
      for (std::int64_t b = 0; b < kInputs / 32; ++b) {
        for (std::int64_t i = 0; i < block; ++i) {
          const std::int64_t payload = i - 2 * scales;
          const std::int64_t inside =
              payload < 0 ? i / 2 * 64 + n % 32 * 2 + i % 2
                          : 64 * scales + payload / 4 * 128 + n % 32 * 4 + payload % 4;
          ASSERT_EQ(packed.Out(n, b * block * 32 + inside), packed.In(n, b * block + i)) << i;
        }
      }
    }
  }
}

TEST(ColumnPanels, OutputsPastTheEndAreZeroBytes) {
  const Packed packed(ElementType::kQ4_1);
  for (std::int64_t i = 0; i < PanelBytes(ElementType::kQ4_1, kInputs); ++i) {
    const std::int64_t inside = i % 640;  // of a block
    const std::int64_t column = inside < 128 ? inside / 2 % 32 : (inside - 128) / 4 % 32;
    if (column >= kOutputs - 32) {
      ASSERT_EQ(packed.Out(32, i), std::byte{0});
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
