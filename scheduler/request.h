#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/sampling_params.h"
#include "base/stop_condition.h"
#include "scheduler/block_keys.h"
#include "scheduler/namespace.h"

namespace pagoda::scheduler {

// What the loaded model and this server allow; the one source for validation, GetModel and the docs test.
struct ModelLimits {
  std::uint32_t vocabulary_size = 0;
  std::int32_t max_model_len = 0;  // tokens: prompt and reply together
  std::int32_t block_size = 16;
  std::int32_t capacity_blocks = 0;        // what the tenant can ever hold (scheduling.md: C)
  std::vector<base::TokenId> eos_tokens;   // every end-of-sequence id of the model's files
  static constexpr std::int32_t kMaxStopTokenIds = 64;
  static constexpr std::int32_t kMaxLogitBiases = 1024;
  static constexpr std::int32_t kMinPriority = -100;
  static constexpr std::int32_t kMaxPriority = 100;
};

// A request's parameters as a door parsed them: absent differs from zero. Unchecked.
struct RequestFields {
  std::optional<float> temperature, top_p, min_p;
  std::optional<float> presence_penalty, frequency_penalty, repetition_penalty;
  std::optional<std::int32_t> top_k, max_tokens, min_tokens, priority;
  std::optional<std::uint64_t> seed;
  std::optional<bool> ignore_eos;
  std::vector<base::TokenId> stop_token_ids;
  std::vector<base::LogitBias> logit_bias;
  base::Instant deadline = base::Instant::Never();
};

// The one validated request type: what exists is in range for the loaded model. Made in two steps, by the door
// (parameters) and by a text worker (prompt), then moved to the engine thread, which never allocates for it. Its buffers
// come back in the finish event and are freed on a text worker.
// Move-only; threads: owned by one at a time.
class NewRequest {
 public:
  // Checks every parameter against `limits`. Errors are InvalidArgument and name the field (FieldOf in field_error.h),
  // what was asked and what is allowed. An absent seed is taken from `drawn_seed`.
  static absl::StatusOr<NewRequest> Create(const RequestFields& fields, const ModelLimits& limits,
                                           std::uint64_t drawn_seed);

  // Takes the prompt. `prompt` is copied into a buffer with room for the whole reply. Refuses with InvalidArgument an empty
  // prompt, an id outside the vocabulary, prompt + max_tokens over max_model_len; with FailedPrecondition (both numbers in
  // the text) what can never fit the pool. An absent max_tokens becomes the rest of the context, cut to what the tenant can
  // ever hold. `keys` are the keys of the prompt's full blocks under `cache_namespace` and `epoch`.
  absl::Status AttachPrompt(std::span<const base::TokenId> prompt, const ModelLimits& limits);

  // Set by the server before the request is queued.
  base::RequestId id{0};
  base::TenantId tenant{0};
  std::optional<NamespaceKey> cache_namespace;  // always set once queued
  bool one_request_namespace = false;           // anonymous: neither matches nor publishes
  std::uint64_t epoch = 0;                      // the epoch `prompt_keys` were made under
  std::vector<BlockKey> prompt_keys;
  std::unique_ptr<const base::StopCondition> stop_condition;  // null: no stop strings
  base::Instant arrival;

  const base::SamplingParams& sampling() const { return sampling_; }
  std::span<const base::TokenId> stop_token_ids() const { return stop_token_ids_; }
  std::span<const base::LogitBias> logit_bias() const { return logit_bias_; }
  std::int32_t max_tokens() const { return max_tokens_; }
  std::int32_t prompt_length() const { return prompt_length_; }
  std::int32_t priority() const { return priority_; }
  base::Instant deadline() const { return deadline_; }
  // Prompt, then every accepted token. push_back never allocates: the capacity is prompt + max_tokens.
  std::vector<base::TokenId>& tokens() { return tokens_; }
  const std::vector<base::TokenId>& tokens() const { return tokens_; }

  // ceil((prompt + max_tokens - 1) / block): the last token's KV is never written.
  std::int32_t WorstCaseBlocks(std::int32_t block_size) const;

 private:
  NewRequest() = default;

  base::SamplingParams sampling_;
  std::vector<base::TokenId> stop_token_ids_;
  std::vector<base::LogitBias> logit_bias_;
  std::optional<std::int32_t> asked_max_tokens_;
  std::int32_t max_tokens_ = 0;
  std::int32_t prompt_length_ = 0;
  std::int32_t priority_ = 0;
  base::Instant deadline_ = base::Instant::Never();
  std::vector<base::TokenId> tokens_;
};

}  // namespace pagoda::scheduler
