#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/sampling_params.h"
#include "tests/fakes/digest_executor.h"

namespace pagoda::scheduler::testing {

// What a request must be answered: the digest model run on it alone, whole prompt at once, then
// token by token, by plans written here by hand. Every choice is a run of its own. Shares nothing
// with the scheduler.
class SoloOracle {
 public:
  SoloOracle(std::int32_t block_size, std::int32_t max_length, base::TokenId vocabulary_size);

  std::vector<base::TokenId> Answer(std::span<const base::TokenId> prompt,
                                    const base::SamplingParams& sampling, std::size_t num_tokens,
                                    std::uint32_t choice = 0);

 private:
  base::TokenId Step(const StepPlan& plan);

  std::int32_t block_size_;
  std::int32_t num_blocks_;
  fakes::DigestExecutor executor_;
};

}  // namespace pagoda::scheduler::testing
