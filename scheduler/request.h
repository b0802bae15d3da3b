#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/sampling_params.h"
#include "base/stop_condition.h"
#include "scheduler/block_keys.h"
#include "scheduler/choice.h"
#include "scheduler/namespace.h"

namespace pagoda::scheduler {

// What the loaded model and this server allow; the one source for validation and GetModel.
struct ModelLimits {
  std::uint32_t vocabulary_size = 0;
  std::int32_t max_model_len = 0;  // tokens: prompt and reply together
  std::int32_t block_size = 16;
  std::int32_t capacity_blocks = 0;         // what the tenant can ever hold (README.md: C)
  std::int32_t max_num_seqs = kMaxChoices;  // device rows; a request takes one for each choice
  std::vector<base::TokenId> eos_tokens;    // every end-of-sequence id of the model's files
  static constexpr std::int32_t kMaxChoices = 64;  // of one request, however many rows there are
  static constexpr std::int32_t kMaxStopTokenIds = base::kMaxStopTokenIds;
  static constexpr std::int32_t kMaxLogitBiases = base::kMaxLogitBiases;
  static constexpr std::int32_t kMinPriority = -100;
  static constexpr std::int32_t kMaxPriority = 100;
  static constexpr float kMaxPenalty = 2.0f;      // presence and frequency: [-2, 2]
  static constexpr float kMaxLogitBias = 100.0f;  // [-100, 100]
};

// A request's parameters as a door parsed them: absent differs from zero. Unchecked.
struct RequestFields {
  std::optional<float> temperature, top_p, min_p;
  std::optional<float> presence_penalty, frequency_penalty, repetition_penalty;
  std::optional<std::int32_t> top_k, max_tokens, min_tokens, priority, n;
  std::optional<std::int32_t> logprobs, prompt_logprobs;
  std::optional<std::uint64_t> seed;
  std::optional<bool> ignore_eos, include_stop_string, skip_reading_prefix_cache;
  std::optional<std::vector<base::TokenId>> allowed_token_ids;
  std::vector<base::TokenId> logprob_token_ids;
  std::vector<base::TokenId> stop_token_ids;
  std::vector<base::LogitBias> logit_bias;
  base::Instant deadline = base::Instant::Never();
};

// Machine-readable reasons of refusals that a door must tell apart from a mere bad field
// (base::ReasonOf).
inline constexpr std::string_view kReasonEmptyPrompt = "EMPTY_PROMPT";
inline constexpr std::string_view kReasonContextTooLong = "CONTEXT_TOO_LONG";
inline constexpr std::string_view kReasonKvPoolTooSmall = "KV_POOL_TOO_SMALL";

// The one validated request type: what exists is in range for the loaded model. Made in steps, by
// the door (parameters) and by a text worker (prompt, keys), then moved to the engine thread, which
// never allocates for it. Its buffers come back in the finish event and are freed on a text worker.
// Move-only; threads: owned by one at a time.
class NewRequest {
 public:
  // Checks every parameter against `limits`. Errors are InvalidArgument and name the field (FieldOf
  // in field_error.h), what was asked and what is allowed. An absent seed is taken from
  // `drawn_seed`.
  static absl::StatusOr<NewRequest> Create(const RequestFields& fields, const ModelLimits& limits,
                                           std::uint64_t drawn_seed);

  // Takes the prompt. `prompt` is copied into a buffer with room for the whole reply, for every
  // choice one. Refuses with
  // InvalidArgument an empty prompt, an id outside the vocabulary, prompt + max_tokens over
  // max_model_len; with FailedPrecondition (both numbers in the text) what can never fit the pool.
  // An absent max_tokens becomes the rest of the context, cut to what the tenant can ever hold. A
  // refusal leaves the request as it was.
  absl::Status AttachPrompt(std::span<const base::TokenId> prompt, const ModelLimits& limits);

  // Keys the prompt's full blocks, with room for the reply's. Sets cache_namespace. Requires:
  // AttachPrompt succeeded; `keyer` was made for `key`. Not needed for a one-request namespace. A
  // request without keys is served, and keyed by the engine thread.
  void AttachKeys(const NamespaceKey& key, const BlockKeyer& keyer);

  // Takes the bad words, as token lists (none of them empty). Refuses with InvalidArgument, field
  // bad_words, too many tokens, and words that with the other parameters leave no token to draw.
  absl::Status AttachBadWords(std::span<const std::vector<base::TokenId>> words,
                              const ModelLimits& limits);

  // Set by the server before the request is queued.
  base::RequestId id{0};
  base::TenantId tenant{0};
  std::optional<NamespaceKey> cache_namespace;  // always set once queued
  bool one_request_namespace = false;           // anonymous: neither matches nor publishes
  std::unique_ptr<const base::StopCondition> stop_condition;  // null: no stop strings
  base::Instant arrival;

  const base::SamplingParams& sampling() const { return sampling_; }
  std::span<const base::TokenId> stop_token_ids() const { return stop_token_ids_; }
  std::span<const base::LogitBias> logit_bias() const { return logit_bias_; }
  // One bit per token, 1 = may be drawn, in words of 32; empty: all may.
  std::span<const std::uint32_t> allowed_words() const { return allowed_words_; }
  // Each word as its number of tokens, then the tokens.
  std::span<const base::TokenId> bad_words() const { return bad_words_; }
  // Empty: the likeliest.
  std::span<const base::TokenId> logprob_token_ids() const { return logprob_token_ids_; }
  bool include_stop_string() const { return include_stop_string_; }
  // Whether it computes its whole prompt, whatever is cached. What it computes is cached for
  // others.
  bool skips_reading_cache() const { return skips_reading_cache_; }
  std::int32_t max_tokens() const { return max_tokens_; }
  std::int32_t prompt_length() const { return prompt_length_; }
  std::int32_t priority() const { return priority_; }
  base::Instant deadline() const { return deadline_; }
  // The epoch the keys were made under; under another one the request neither matches nor seals.
  std::uint64_t epoch() const { return epoch_; }
  bool has_keys() const { return has_keys_; }

  // The n replies. They share prompt and parameters; each has its own tokens, keys, stop and end.
  std::uint32_t num_choices() const { return static_cast<std::uint32_t>(choices_.size()); }
  std::span<Choice> choices() { return choices_; }
  std::span<const Choice> choices() const { return choices_; }
  Choice& choice(std::uint32_t index) { return choices_[index]; }
  const Choice& choice(std::uint32_t index) const { return choices_[index]; }

  // Prompt, then every accepted token. push_back never allocates: the capacity is prompt +
  // max_tokens.
  std::vector<base::TokenId>& tokens(std::uint32_t index = 0) { return choices_[index].tokens; }
  const std::vector<base::TokenId>& tokens(std::uint32_t index = 0) const {
    return choices_[index].tokens;
  }
  const std::vector<BlockKey>& keys(std::uint32_t index = 0) const { return choices_[index].keys; }

  // The blocks it can ever hold at once: those of the whole prompt once, the rest for every choice.
  // The last token's KV is never written.
  std::int32_t WorstCaseBlocks(std::int32_t block_size) const;

  // Keys the full blocks among a choice's known tokens that have no key yet. The engine thread's
  // part of AttachKeys.
  void ExtendKeys(const BlockKeyer& keyer, std::uint32_t index = 0) {
    keyer.ExtendKeys(choices_[index].tokens, choices_[index].keys);
  }

 private:
  friend struct SnapshotAccess;
  NewRequest() = default;
  absl::Status CheckSampling(const RequestFields& fields, const ModelLimits& limits);
  absl::Status CheckLists(const RequestFields& fields, const ModelLimits& limits);
  absl::Status CheckLogprobs(const RequestFields& fields, const ModelLimits& limits);
  absl::Status AllowOnly(std::span<const base::TokenId> tokens, const ModelLimits& limits);
  absl::Status CheckSomethingCanBeDrawn(std::string_view field, const ModelLimits& limits) const;

  base::SamplingParams sampling_;
  std::vector<base::TokenId> stop_token_ids_;
  std::vector<base::LogitBias> logit_bias_;
  std::vector<std::uint32_t> allowed_words_;
  std::vector<base::TokenId> bad_words_;
  std::vector<base::TokenId> logprob_token_ids_;
  bool include_stop_string_ = false;
  bool skips_reading_cache_ = false;
  std::optional<std::int32_t> asked_max_tokens_;
  std::int32_t max_tokens_ = 0;
  std::int32_t prompt_length_ = 0;
  std::int32_t priority_ = 0;
  base::Instant deadline_ = base::Instant::Never();
  std::vector<Choice> choices_;
  std::uint64_t epoch_ = 0;
  bool has_keys_ = false;
};

}  // namespace pagoda::scheduler
