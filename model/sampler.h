#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/sampling_params.h"
#include "base/token_score.h"
#include "model/logit_rules.h"

namespace pagoda::kernels {
class Ops;
}

namespace pagoda::model {

// What came of one row.
struct SampledToken {
  base::TokenId token = 0;
  bool finite = true;  // false: the row held a NaN or infinity; nothing else holds
  // True: masks have left nothing to draw; token is meaningless.
  bool nothing_allowed = false;
  base::TokenScore score = {};  // of the token, when the slot asked for logprobs
};

// One draw. The logits are not changed, so that several draws may share a row; they may be longer
// than the vocabulary (padding rows), which is then ignored.
struct SampleTask {
  base::SlotId slot;
  std::uint32_t choice = 0;
  std::uint32_t position = 0;  // of the token drawn
  std::span<const float> logits;
};

// What the row says about a token of the prompt.
struct ScoreTask {
  base::SlotId slot;
  base::TokenId token = 0;
  std::span<const float> logits;  // not changed
};

// Alternatives of all scores of a step: the array that they index. Reserved by its owner.
using Alternatives = std::vector<base::TokenLogprob>;

// Chooses tokens: a pure function of (logit row, parameters, seed, choice, position, history), in
// the order of numerics.md part 2. Log-probabilities are of the logits as the model gave them.
// Nothing allocates after construction. Thread: the engine's.
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
                      std::span<const float> logits);
  // The same for many rows at once; every slot at most once. Alternatives are appended. Requires:
  // as many tokens as tasks, at most max_num_seqs.
  void SampleBatch(std::span<const SampleTask> tasks, std::span<SampledToken> tokens,
                   Alternatives& alternatives);
  // Log-probabilities of given tokens, with prompt_logprobs alternatives each. A row that is not
  // finite gives finite = false. Requires: as many tokens as tasks, the slots are open.
  void ScoreBatch(std::span<const ScoreTask> tasks, std::span<SampledToken> tokens,
                  Alternatives& alternatives);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::model
