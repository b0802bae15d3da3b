#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/sampling_params.h"

namespace pagoda::kernels {
class Ops;
}

namespace pagoda::model {

// What a slot was opened with.
struct SamplerOpening {
  base::SamplingParams params = {};
  std::span<const base::TokenId> history = {};  // prompt, then generated
  std::int32_t num_prompt_tokens = 0;
  std::span<const base::LogitBias> logit_bias = {};
  std::span<const base::TokenId> masked_below_min_tokens = {};  // stop ids, and EOS unless ignored
};

struct SampledToken {
  base::TokenId token = 0;
  bool finite = true;  // false: the row held a NaN or infinity; token is meaningless
};

// One draw. The logits are changed in place; they may be longer than the vocabulary (padding rows),
// which is then ignored.
struct SampleTask {
  base::SlotId slot;
  std::uint32_t choice = 0;
  std::uint32_t position = 0;  // of the token drawn
  std::span<float> logits;
};

// Chooses tokens: a pure function of (logit row, parameters, seed, choice, position, history).
// Holds per slot only what can be derived from the history (penalty counts). Order as numerics.md
// part 2. Allocates at construction only, and where an opening brings more biased or masked tokens
// than any before. Thread: the engine's.
class Sampler {
 public:
  // `ops` must outlive this.
  Sampler(kernels::Ops& ops, std::int32_t max_num_seqs, std::uint32_t vocabulary_size);
  ~Sampler();

  // Replaces whatever the slot held.
  void Open(base::SlotId slot, const SamplerOpening& opening);
  void Close(base::SlotId slot);
  // Draws and counts the token in the slot's history. Requires: the slot is open.
  SampledToken Sample(base::SlotId slot, std::uint32_t choice, std::uint32_t position,
                      std::span<float> logits);
  // The same for many rows at once; every slot at most once. Requires: as many tokens as tasks, at
  // most max_num_seqs.
  void SampleBatch(std::span<const SampleTask> tasks, std::span<SampledToken> tokens);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::model
