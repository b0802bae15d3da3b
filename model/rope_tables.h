#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/tensor_view.h"
#include "model/config.h"

namespace pagoda::model {

// Cosine and sine of every position and pair, computed in fp64 and rounded once: angles in fp32
// would be off by 4e-3 at position 131,071. Const after construction; threads: any.
class RopeTables {
 public:
  // `factors` divide the frequencies, one per pair (empty: none): the form in which GGUF keeps
  // what config.llama3_scaling says for others. Requires: not both.
  RopeTables(const Config& config, std::span<const float> factors, std::int32_t num_positions);

  kernels::ConstMatrixView cos() const { return View(cos_); }  // [positions, rotary / 2]
  kernels::ConstMatrixView sin() const { return View(sin_); }

 private:
  kernels::ConstMatrixView View(const std::vector<float>& table) const {
    return {table.data(), num_positions_, num_pairs_, num_pairs_};
  }

  std::int64_t num_positions_;
  std::int64_t num_pairs_;
  std::vector<float> cos_, sin_;
};

}  // namespace pagoda::model
