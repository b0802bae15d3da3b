#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels_pack.h"
#include "kernels/tensor_view.h"

// PackLayout::kColumnPanels, part 4 of kernels/README.md: 32 outputs side by side, so that a vector
// lane is an output.
namespace pagoda::kernels {

// Bytes of a panel over `num_inputs`, whole blocks. The six-bit scales of Q4_K and Q5_K become
// bytes there.
constexpr std::int64_t PanelBytes(ElementType format, std::int64_t num_inputs) {
  const bool widens = format == ElementType::kQ4_K || format == ElementType::kQ5_K;
  const std::int64_t block_bytes = BlockBytes(format) + (widens ? 4 : 0);
  return kPanelColumns * (num_inputs / BlockColumns(format)) * block_bytes;
}

// Writes the panels of one part; out was zeroed before and holds DivUp(rows, 32) panels. Any
// thread.
void PackColumnPanels(const TensorView& source, std::byte* out);

}  // namespace pagoda::kernels
