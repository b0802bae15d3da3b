#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels_pack.h"
#include "kernels/tensor_view.h"

// PackLayout::kColumnPanels, part 4 of kernels/README.md: 32 outputs side by side, so that a vector
// lane is an output.
namespace pagoda::kernels {

// Bytes of a panel over `num_inputs`, a multiple of 32.
constexpr std::int64_t PanelBytes(ElementType format, std::int64_t num_inputs) {
  return kPanelColumns * RowBytes(format, num_inputs);
}

// Writes the panels of one part; out was zeroed before and holds DivUp(rows, 32) panels. Any
// thread.
void PackColumnPanels(const TensorView& source, std::byte* out);

}  // namespace pagoda::kernels
