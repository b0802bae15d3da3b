#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/sampling_params.h"

namespace pagoda::model {

// What a slot was opened with.
struct SamplerOpening {
  base::SamplingParams params = {};
  std::span<const base::TokenId> history = {};  // prompt, then generated
  std::int32_t num_prompt_tokens = 0;
  std::span<const base::LogitBias> logit_bias = {};
  std::span<const base::TokenId> masked_below_min_tokens = {};  // stop ids, and EOS unless ignored
  std::span<const std::uint32_t> allowed_words = {};  // a bit per token, 1 = allowed; empty: all
  std::span<const base::TokenId> bad_words = {};      // each: its number of tokens, then they
  std::span<const base::TokenId> logprob_token_ids = {};  // empty: the likeliest
};

// What one request does to its logits before a token is drawn, in the order of numerics.md: allowed
// tokens, bad words, ends below min_tokens; bias; penalties. Keeps only what can be made again from
// the history, so a preempted request continues with the same tokens. Everything is reserved at
// construction. Owner: the sampler, one per slot. Thread: the engine's.
class LogitRules {
 public:
  LogitRules(std::uint32_t vocabulary_size, std::size_t max_masked_tokens);

  // Replaces whatever stood here.
  void Open(const SamplerOpening& opening);
  void Close() { is_open_ = false; }
  // `token` was drawn.
  void Count(base::TokenId token);

  bool is_open() const { return is_open_; }
  const base::SamplingParams& params() const { return params_; }
  std::span<const base::TokenId> logprob_token_ids() const { return logprob_token_ids_; }
  // Whether the next Apply may change a logit.
  bool changes_logits() const;

  struct Effect {
    bool hides_fault = false;  // a mask would have covered a NaN or infinity
    bool hides_token = false;  // a mask took a token that could have been drawn
  };
  // Requires: as many logits as the vocabulary.
  Effect Apply(std::span<float> logits) const;

 private:
  void MaskWhatIsNotAllowed(std::span<float> logits, Effect& effect) const;
  void MaskBadWords(std::span<float> logits, Effect& effect) const;
  void MaskEnds(std::span<float> logits, Effect& effect) const;
  void Penalise(std::span<float> logits) const;

  const std::uint32_t vocabulary_size_;
  bool is_open_ = false;
  base::SamplingParams params_;
  std::int32_t num_generated_ = 0;
  std::vector<base::LogitBias> logit_bias_;
  std::vector<base::TokenId> masked_below_min_tokens_;
  std::vector<std::uint32_t> allowed_words_;
  std::vector<base::TokenId> bad_words_;
  std::vector<base::TokenId> logprob_token_ids_;
  // Per token: how often it was generated, and kInPrompt when the prompt holds it. Filled only for
  // requests with penalties.
  std::vector<std::uint32_t> counts_;
  // The newest generated tokens, as many as the longest bad word has before its last.
  std::vector<base::TokenId> recent_;
  std::size_t num_recent_ = 0;
};

}  // namespace pagoda::model
