#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/sampling_params.h"

namespace pagoda::model {

// What a slot was opened with.
struct SamplerOpening {
  base::SamplingParams params;
  std::span<const base::TokenId> history;  // prompt, then generated
  std::int32_t num_prompt_tokens = 0;
  std::span<const base::LogitBias> logit_bias;
  std::span<const base::TokenId> masked_below_min_tokens;  // stop ids, and EOS unless ignored
};

struct SampledToken {
  base::TokenId token = 0;
  bool finite = true;  // false: the row held a NaN or infinity; token is meaningless
};

// Chooses tokens: a pure function of (logit row, parameters, seed, choice, position, history). Holds per slot only what
// can be derived from the history (penalty counts). Order as numerics.md part 2. Thread: the engine's.
class Sampler {
 public:
  Sampler(std::int32_t max_num_seqs, std::uint32_t vocabulary_size);
  ~Sampler();

  void Open(base::SlotId slot, const SamplerOpening& opening);
  void Close(base::SlotId slot);
  // Draws the token at `position` from `logits` (changed in place) and counts it in the slot's history.
  SampledToken Sample(base::SlotId slot, std::uint32_t choice, std::uint32_t position,
                      std::span<float> logits);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::model
