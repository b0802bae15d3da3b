#include "kernels/column_panels.h"

#include <cstring>

#include "base/check.h"

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
  const std::int64_t block_bytes = BytesPerUnit(source.type);
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
  }
}

}  // namespace

void PackColumnPanels(const TensorView& source, std::byte* out) {
  PAGODA_CHECK(source.columns % kQuantBlock == 0);
  const std::int64_t panel_bytes = PanelBytes(source.type, source.columns);
  for (std::int64_t n = 0; n < source.rows; ++n) {
    PackRow(source, n, out + n / kPanelColumns * panel_bytes);
  }
}

}  // namespace pagoda::kernels
