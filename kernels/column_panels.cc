#include "kernels/column_panels.h"

#include <cstring>

#include "base/check.h"
#include "kernels/quant_block.h"

namespace pagoda::kernels {
namespace {

constexpr std::int64_t kScaleBytes = 2;
constexpr std::int64_t kLaneBytes =
    4;  // consecutive k of one output, as integer dot products want them

void Move(std::byte* target, const std::byte* source, std::int64_t bytes) {
  std::memcpy(target, source, static_cast<std::size_t>(bytes));
}

// One row of [K / group][c][group], a group of group_bytes.
void PackFloats(const std::byte* row, std::int64_t row_bytes, std::int64_t group_bytes,
                std::byte* panel_lane) {
  for (std::int64_t at = 0; at < row_bytes; at += group_bytes) {
    Move(panel_lane + at * kPanelColumns, row + at, group_bytes);
  }
}

// Per block: num_scales planes of [c] f16, then the payload as [payload / 4][c][4].
void PackBlocks(const TensorView& source, const std::byte* row, std::int64_t column,
                std::byte* panel) {
  const std::int64_t block_bytes = BlockBytes(source.type);
  const std::int64_t num_scales = source.type == ElementType::kQ4_1 ? 2 : 1;
  for (std::int64_t b = 0; b < source.columns / kQuantBlock; ++b) {
    const std::byte* block = row + b * block_bytes;
    std::byte* target = panel + b * block_bytes * kPanelColumns;
    for (std::int64_t s = 0; s < num_scales; ++s) {
      Move(target + (s * kPanelColumns + column) * kScaleBytes, block + s * kScaleBytes,
           kScaleBytes);
    }
    const std::byte* payload = block + num_scales * kScaleBytes;
    target += num_scales * kScaleBytes * kPanelColumns + column * kLaneBytes;
    for (std::int64_t at = 0; at < block_bytes - num_scales * kScaleBytes; at += kLaneBytes) {
      Move(target + at * kPanelColumns, payload + at, kLaneBytes);
    }
  }
}

template <typename T>
void Put(T value, std::byte* target) {
  std::memcpy(target, &value, sizeof(value));
}

// d and, with a minimum, m of one output: planes of [c] f16. Returns their bytes in the panel.
std::int64_t PutHalves(ElementType type, const QuantBlock& block, std::int64_t column,
                       std::byte* target) {
  Put(block.d, target + column * kScaleBytes);
  if (!HasMinimum(type)) return kScaleBytes * kPanelColumns;
  Put(block.m, target + (kPanelColumns + column) * kScaleBytes);
  return 2 * kScaleBytes * kPanelColumns;
}

// The two byte scales of one output in a K type: planes of [c].
std::int64_t PutByteScales(ElementType type, const QuantBlock& block, std::int64_t column,
                           std::byte* target) {
  Put(block.scales[0], target + column);
  const bool has_minimum = HasMinimum(type);
  Put(has_minimum ? block.minimum_scale : block.scales[1], target + kPanelColumns + column);
  return 2 * kPanelColumns;
}

// The element of a block that byte j of group i has in its low nibble, and how far ahead the one in
// its high nibble is. The two scales of Q6_K cover 16 elements each, which there share no group.
struct NibbleOrder {
  std::int64_t group_elements;
  std::int64_t high_offset;
};
constexpr NibbleOrder OrderOf(ElementType type) {
  return type == ElementType::kQ6_K ? NibbleOrder{8, 4} : NibbleOrder{4, 16};
}

std::int64_t PutNibbles(ElementType type, const QuantBlock& block, std::int64_t column,
                        std::byte* target) {
  const NibbleOrder order = OrderOf(type);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < kLaneBytes; ++j) {
      const auto low = static_cast<std::size_t>(i * order.group_elements + j);
      const auto high = low + static_cast<std::size_t>(order.high_offset);
      const int pair = (block.q[low] & 15) | (block.q[high] & 15) << 4;
      Put(static_cast<std::uint8_t>(pair), target + (i * kPanelColumns + column) * kLaneBytes + j);
    }
  }
  return 16 * kPanelColumns;
}

// Byte j of a word has the fifth bit of the low nibble of group i at bit i, of the high one at
// bit 4 + i.
void PutFifthBits(const QuantBlock& block, std::int64_t column, std::byte* target) {
  std::uint32_t word = 0;
  for (std::size_t k = 0; k < kQuantBlock; ++k) {
    const std::size_t bit = k % kLaneBytes * 8 + k / 16 * 4 + k % 16 / kLaneBytes;
    word |= static_cast<std::uint32_t>(block.q[k] >> 4 & 1) << bit;
  }
  Put(word, target + column * kLaneBytes);
}

// A word for each 16 elements; byte j has the upper bits of the elements 4 g + j at bits 2 g.
void PutUpperBits(const QuantBlock& block, std::int64_t column, std::byte* target) {
  std::uint32_t words[2] = {};
  for (std::size_t k = 0; k < kQuantBlock; ++k) {
    const std::size_t bit = k % kLaneBytes * 8 + k % 16 / kLaneBytes * 2;
    words[k / 16] |= static_cast<std::uint32_t>(block.q[k] >> 4 & 3) << bit;
  }
  for (std::int64_t half = 0; half < 2; ++half) {
    Put(words[half], target + (half * kPanelColumns + column) * kLaneBytes);
  }
}

// The types whose elements are not whole nibbles or bytes, or whose scales have two levels.
void PackQuantBlocks(const TensorView& source, const std::byte* row, std::int64_t column,
                     std::byte* panel) {
  const std::int64_t per_unit = BlockColumns(source.type) / kQuantBlock;
  for (std::int64_t b = 0; b < source.columns / kQuantBlock; ++b) {
    const QuantBlock block = ReadQuantBlock(source.type, row, b);
    if (b % per_unit == 0) panel += PutHalves(source.type, block, column, panel);
    if (per_unit > 1) panel += PutByteScales(source.type, block, column, panel);
    panel += PutNibbles(source.type, block, column, panel);
    if (source.type == ElementType::kQ6_K) {
      PutUpperBits(block, column, panel);
      panel += 2 * kLaneBytes * kPanelColumns;
    } else if (source.type != ElementType::kQ4_K) {
      PutFifthBits(block, column, panel);
      panel += kLaneBytes * kPanelColumns;
    }
  }
}

void PackRow(const TensorView& source, std::int64_t n, std::byte* panel) {
  const std::int64_t column = n % kPanelColumns;
  const std::int64_t row_bytes = RowBytes(source.type, source.columns);
  switch (source.type) {
    case ElementType::kF32:
      return PackFloats(source.Row(n), row_bytes, 4, panel + column * 4);
    case ElementType::kF16:
      return PackFloats(source.Row(n), row_bytes, 2, panel + column * 2);
    case ElementType::kBf16:  // two at a time
      return PackFloats(source.Row(n), row_bytes, 4, panel + column * 4);
    case ElementType::kQ4_0:
    case ElementType::kQ4_1:
    case ElementType::kQ8_0:
      return PackBlocks(source, source.Row(n), column, panel);
    case ElementType::kQ5_0:
    case ElementType::kQ5_1:
    case ElementType::kQ4_K:
    case ElementType::kQ5_K:
    case ElementType::kQ6_K:
      return PackQuantBlocks(source, source.Row(n), column, panel);
  }
}

}  // namespace

void PackColumnPanels(const TensorView& source, std::byte* out) {
  PAGODA_CHECK(source.columns % kQuantBlock == 0);
  PAGODA_CHECK(source.columns % BlockColumns(source.type) == 0);
  const std::int64_t panel_bytes = PanelBytes(source.type, source.columns);
  for (std::int64_t n = 0; n < source.rows; ++n) {
    PackRow(source, n, out + n / kPanelColumns * panel_bytes);
  }
}

}  // namespace pagoda::kernels
