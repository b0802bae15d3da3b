#pragma once

#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cpu {

// The log-probabilities of a row by the rules of kernels/README.md part 3. Holds the working memory
// of one thread; grows to the largest vocabulary seen and then allocates nothing.
class RowScorer {
 public:
  ScoreOutcome Score(const ScoreRow& row, const KernelTable& kernels);

 private:
  // log of the sum of exp(x - top) over the row.
  float LogTotal(std::span<const float> logits, float top, const KernelTable& kernels);

  std::vector<float> differences_;
  std::vector<float> weights_;
};

}  // namespace pagoda::kernels::cpu
