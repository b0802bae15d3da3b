#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"

namespace pagoda::model {

// The logits after the last token, straight from the definition in double precision: no cache, no
// blocks, no kernels, its own reading of the quantized forms. What our forward pass is compared
// with where the full-size oracle would be too big.
std::vector<double> NaiveLlamaLogits(std::span<const std::byte> gguf,
                                     std::span<const base::TokenId> tokens);

}  // namespace pagoda::model
