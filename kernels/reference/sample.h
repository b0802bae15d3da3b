#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::reference {

// One token from one row: README part 3, "Sampling". A pure function of the row. Sorts, so it is
// slow on purpose.
SampleOutcome Sample(const SampleRow& row);

// ceil(top_p * total) in exact arithmetic. Requires: 0 < top_p <= 1.
std::uint64_t TopPThreshold(float top_p, std::uint64_t total);

// floor(weight * 2^40): what top-p adds up. Requires: 0 <= weight <= 1.
std::uint64_t FixedPointWeight(float weight);

// The exponential variate of one token.
float ExponentialVariate(const SampleRow& row, base::TokenId token);

}  // namespace pagoda::kernels::reference
