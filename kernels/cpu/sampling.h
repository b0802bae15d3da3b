#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cpu {

// Chooses the token of a row by the rules of kernels/README.md part 3. Holds the working memory of
// one thread; grows to the largest vocabulary seen and then allocates nothing.
class RowSampler {
 public:
  SampleOutcome Sample(const SampleRow& row, const KernelTable& kernels);

 private:
  // Each drops candidates; the order of those that stay is free.
  void KeepTopK(std::int64_t k);
  void KeepTopP(float top_p);
  base::TokenId Draw(const SampleRow& row) const;

  std::vector<float> scores_;   // z, of all tokens
  std::vector<float> weights_;  // exp(z), of all tokens
  std::vector<base::TokenId> kept_;
  std::vector<base::TokenId> crossing_;
  std::vector<std::uint64_t> bucket_sums_;
};

}  // namespace pagoda::kernels::cpu
