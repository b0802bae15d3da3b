#pragma once

#include <cstddef>
#include <span>

#include "kernels/tensor_view.h"

namespace pagoda::kernels {

// One stored row widened to fp32, with the bits that the gguf package gives. Requires: `row` holds
// RowBytes(type, out.size()); out.size() is whole blocks. Any alignment,
// any thread.
void DequantizeRow(ElementType type, const std::byte* row, std::span<float> out);

}  // namespace pagoda::kernels
