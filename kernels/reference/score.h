#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::reference {

// The log-probabilities of one row: README part 3, "Log-probabilities". Sorts, so it is slow on
// purpose.
ScoreOutcome Score(const ScoreRow& row);

}  // namespace pagoda::kernels::reference
