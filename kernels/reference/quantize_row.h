#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda::kernels::reference {

// One row of activations as int8: per 32 elements a scale, and the sum of the bytes for formats
// with a minimum.
struct QuantizedRow {
  std::vector<std::int8_t> values;  // [K]
  std::vector<float> scales;        // [K / 32]
  std::vector<std::int32_t> sums;   // [K / 32]
};

// README part 3, "activation int8". Requires: row.size() is a multiple of 32.
QuantizedRow QuantizeRow(std::span<const float> row);

}  // namespace pagoda::kernels::reference
