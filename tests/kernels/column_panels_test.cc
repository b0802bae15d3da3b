#include "kernels/column_panels.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quant_block.h"

namespace pagoda::kernels {
namespace {

constexpr std::int64_t kOutputs = 40;  // a full panel and a cut one
constexpr std::int64_t kInputs = 64;

// Source bytes that tell row and place in the row apart.
std::vector<std::byte> Source(ElementType type, std::int64_t num_inputs) {
  std::vector<std::byte> bytes;
  for (std::int64_t n = 0; n < kOutputs; ++n) {
    for (std::int64_t i = 0; i < RowBytes(type, num_inputs); ++i) {
      bytes.push_back(static_cast<std::byte>(1 + (n * 31 + i * 7) % 255));
    }
  }
  return bytes;
}

struct Packed {
  explicit Packed(ElementType type_in) : type(type_in), source(Source(type, kInputs)) {
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
    const std::int64_t size = BlockBytes(type);
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
    const std::int64_t block = BlockBytes(type);
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

// A panel of the types with upper bits or two levels of scales, read as README part 4 has it.
class PanelReader {
 public:
  PanelReader(ElementType type, const std::byte* panel)
      : type_(type),
        is_k_(BlockColumns(type) == 256),
        halves_(HasMinimum(type) ? 128 : 64),
        upper_bytes_(type == ElementType::kQ6_K   ? 256
                     : type == ElementType::kQ4_K ? 0
                                                  : 128),
        panel_(panel) {}

  std::uint16_t Half(std::int64_t b, std::int64_t c, std::int64_t plane) const {
    return static_cast<std::uint16_t>(Byte(Unit(b) + plane * 64 + 2 * c) |
                                      Byte(Unit(b) + plane * 64 + 2 * c + 1) << 8);
  }
  std::int8_t Scale(std::int64_t b, std::int64_t c, std::int64_t plane) const {
    return static_cast<std::int8_t>(Byte(Own(b) + 32 * plane + c));
  }
  int Element(std::int64_t b, std::int64_t c, std::int64_t k) const {
    const std::int64_t nibbles = Own(b) + (is_k_ ? 64 : 0);
    const std::int64_t upper = nibbles + 512 + 4 * c + k % 4;
    if (type_ == ElementType::kQ6_K) {
      const int nibble = Byte(nibbles + k / 8 * 128 + 4 * c + k % 4) >> (k % 8 / 4 * 4) & 15;
      return nibble | (Byte(upper + k / 16 * 128) >> (k % 16 / 4 * 2) & 3) << 4;
    }
    const std::int64_t group = k % 16 / 4;
    const int nibble = Byte(nibbles + group * 128 + 4 * c + k % 4) >> (k / 16 * 4) & 15;
    if (type_ == ElementType::kQ4_K) return nibble;
    return nibble | (Byte(upper) >> (k / 16 * 4 + group) & 1) << 4;
  }

 private:
  int Byte(std::int64_t at) const { return std::to_integer<int>(panel_[at]); }
  std::int64_t BlockSize() const { return (is_k_ ? 64 : 0) + 512 + upper_bytes_; }
  std::int64_t Unit(std::int64_t b) const {
    return is_k_ ? b / 8 * (halves_ + 8 * BlockSize()) : b * (halves_ + BlockSize());
  }
  std::int64_t Own(std::int64_t b) const {
    return Unit(b) + halves_ + (is_k_ ? b % 8 * BlockSize() : 0);
  }

  ElementType type_;
  bool is_k_;
  std::int64_t halves_, upper_bytes_;
  const std::byte* panel_;
};

TEST(ColumnPanels, UpperBitsAndTwoLevelsOfScalesStandAsWritten) {
  constexpr std::int64_t kLong = 512;
  for (const ElementType type : {ElementType::kQ5_0, ElementType::kQ5_1, ElementType::kQ4_K,
                                 ElementType::kQ5_K, ElementType::kQ6_K}) {
    SCOPED_TRACE(Name(type));
    const std::vector<std::byte> source = Source(type, kLong);
    std::vector<std::byte> out(static_cast<std::size_t>(2 * PanelBytes(type, kLong)));
    PackColumnPanels(TensorView::Contiguous(source.data(), type, kOutputs, kLong), out.data());
    for (std::int64_t n = 0; n < kOutputs; ++n) {
      const PanelReader panel(type, out.data() + n / 32 * PanelBytes(type, kLong));
      for (std::int64_t b = 0; b < kLong / 32; ++b) {
        const QuantBlock block = ReadQuantBlock(type, source.data() + n * RowBytes(type, kLong), b);
        ASSERT_EQ(panel.Half(b, n % 32, 0), block.d);
        if (HasMinimum(type)) {
          ASSERT_EQ(panel.Half(b, n % 32, 1), block.m);
        }
        if (BlockColumns(type) == 256) {
          ASSERT_EQ(panel.Scale(b, n % 32, 0), block.scales[0]);
          ASSERT_EQ(panel.Scale(b, n % 32, 1),
                    HasMinimum(type) ? block.minimum_scale : block.scales[1]);
        }
        for (std::int64_t k = 0; k < 32; ++k) {
          ASSERT_EQ(panel.Element(b, n % 32, k), block.q[static_cast<std::size_t>(k)]) << k;
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
