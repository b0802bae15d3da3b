#include "scheduler/request.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/token_score.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {
namespace {

// "top_p: 1.5 asked, allowed is above 0 and at most 1".
template <typename T>
absl::Status Refuse(std::string_view field, T asked, std::string_view allowed) {
  return base::FieldError(field, absl::StrCat(asked, " asked, allowed is ", base::ToAbsl(allowed)));
}

// Comparisons are written so that a NaN fails them.
absl::Status CheckFloat(std::string_view field, std::optional<float> asked, bool in_range,
                        std::string_view allowed) {
  if (!asked.has_value()) return absl::OkStatus();
  if (std::isfinite(*asked) && in_range) return absl::OkStatus();
  return Refuse(field, *asked, allowed);
}

absl::Status CheckToken(std::string_view field, base::TokenId token, const ModelLimits& limits) {
  if (token < limits.vocabulary_size) return absl::OkStatus();
  return Refuse(field, token, absl::StrCat("a token id below ", limits.vocabulary_size));
}

absl::Status CheckTokens(std::string_view field, std::span<const base::TokenId> tokens,
                         const ModelLimits& limits) {
  for (const base::TokenId token : tokens) {
    PAGODA_RETURN_IF_ERROR(CheckToken(field, token, limits));
  }
  return absl::OkStatus();
}

absl::Status CheckLogprobCount(std::string_view field, std::optional<std::int32_t> asked) {
  if (!asked.has_value() || (*asked >= 0 && *asked <= base::kMaxLogprobs)) return absl::OkStatus();
  return Refuse(field, *asked, absl::StrCat("from 0 to ", base::kMaxLogprobs));
}

// Bits of tokens, in words of 32.
std::size_t NumWords(const ModelLimits& limits) {
  return base::DivUp<std::size_t>(limits.vocabulary_size, 32);
}
void SetBit(std::span<std::uint32_t> words, base::TokenId token) {
  words[token / 32] |= std::uint32_t{1} << (token % 32);
}
void ClearBit(std::span<std::uint32_t> words, base::TokenId token) {
  words[token / 32] &= ~(std::uint32_t{1} << (token % 32));
}

absl::Status CheckCount(std::string_view field, std::size_t count, std::int32_t most) {
  if (count <= static_cast<std::size_t>(most)) return absl::OkStatus();
  return base::FieldError(field, absl::StrCat(count, " entries asked, at most ", most, " allowed"));
}

// Blocks of the prompt are held once, what follows them by each of `choices`.
std::int64_t BlocksNeeded(std::int64_t prompt, std::int64_t max_tokens, std::int64_t choices,
                          std::int64_t block_size) {
  const std::int64_t shared = prompt / block_size;
  return shared + choices * (base::DivUp(prompt + max_tokens - 1, block_size) - shared);
}

// The most tokens that each choice can be given so that its blocks fit into `capacity`.
std::int64_t LongestReply(std::int64_t prompt, std::int64_t choices, std::int64_t capacity,
                          std::int64_t block_size) {
  const std::int64_t shared = prompt / block_size;
  return (shared + (capacity - shared) / choices) * block_size + 1 - prompt;
}

}  // namespace

absl::StatusOr<NewRequest> NewRequest::Create(const RequestFields& fields,
                                              const ModelLimits& limits, std::uint64_t drawn_seed) {
  NewRequest request;
  PAGODA_RETURN_IF_ERROR(request.CheckSampling(fields, limits));
  PAGODA_RETURN_IF_ERROR(request.CheckLists(fields, limits));
  PAGODA_RETURN_IF_ERROR(request.CheckLogprobs(fields, limits));
  const std::int32_t n = fields.n.value_or(1);
  const std::int32_t most_choices = std::min(ModelLimits::kMaxChoices, limits.max_num_seqs);
  if (n < 1 || n > most_choices) {
    return Refuse("n", n,
                  absl::StrCat("from 1 to ", most_choices, " (at most ", ModelLimits::kMaxChoices,
                               ", and the caller can run ", limits.max_num_seqs,
                               " at once: max_num_seqs, or its tenant's share of it)"));
  }
  request.choices_.resize(static_cast<std::size_t>(n));
  const std::int32_t priority = fields.priority.value_or(0);
  if (priority < ModelLimits::kMinPriority || priority > ModelLimits::kMaxPriority) {
    return Refuse("priority", priority,
                  absl::StrCat("from ", ModelLimits::kMinPriority, " to ",
                               ModelLimits::kMaxPriority, ", lower first"));
  }
  if (fields.allowed_token_ids.has_value()) {
    PAGODA_RETURN_IF_ERROR(request.AllowOnly(*fields.allowed_token_ids, limits));
  }
  request.include_stop_string_ = fields.include_stop_string.value_or(false);
  request.skips_reading_cache_ =
      fields.skip_reading_prefix_cache.value_or(false) && !PAGODA_MUTANT(kSkipperReads);
  request.sampling_.seed = fields.seed.value_or(drawn_seed);
  request.asked_max_tokens_ = fields.max_tokens;
  request.priority_ = priority;
  request.deadline_ = fields.deadline;
  return request;
}

absl::Status NewRequest::CheckSampling(const RequestFields& fields, const ModelLimits& limits) {
  const auto temperature = fields.temperature, top_p = fields.top_p, min_p = fields.min_p;
  PAGODA_RETURN_IF_ERROR(
      CheckFloat("temperature", temperature, temperature >= 0.0f, "a finite number of at least 0"));
  PAGODA_RETURN_IF_ERROR(
      CheckFloat("top_p", top_p, top_p > 0.0f && top_p <= 1.0f, "above 0 and at most 1"));
  PAGODA_RETURN_IF_ERROR(CheckFloat("min_p", min_p, min_p >= 0.0f && min_p <= 1.0f, "from 0 to 1"));
  for (const auto& [field, value] : {std::pair("presence_penalty", fields.presence_penalty),
                                     std::pair("frequency_penalty", fields.frequency_penalty)}) {
    const bool in_range = std::abs(value.value_or(0.0f)) <= ModelLimits::kMaxPenalty;
    PAGODA_RETURN_IF_ERROR(CheckFloat(field, value, in_range, "from -2 to 2"));
  }
  PAGODA_RETURN_IF_ERROR(CheckFloat("repetition_penalty", fields.repetition_penalty,
                                    fields.repetition_penalty > 0.0f, "a finite number above 0"));
  const std::int32_t top_k = fields.top_k.value_or(0);
  if (top_k < -1) return Refuse("top_k", top_k, "0 or -1 (off), or at least 1");
  if (fields.max_tokens.has_value() && *fields.max_tokens < 1) {
    return Refuse("max_tokens", *fields.max_tokens, "at least 1");
  }
  const std::int32_t longest = fields.max_tokens.value_or(limits.max_model_len);
  const std::int32_t min_tokens = fields.min_tokens.value_or(0);
  if (min_tokens < 0 || min_tokens > longest) {
    return Refuse("min_tokens", min_tokens, absl::StrCat("from 0 to max_tokens, here ", longest));
  }
  sampling_.temperature = temperature.value_or(1.0f);
  sampling_.top_p = top_p.value_or(1.0f);
  sampling_.min_p = min_p.value_or(0.0f);
  sampling_.top_k = std::max(top_k, 0);
  sampling_.presence_penalty = fields.presence_penalty.value_or(0.0f);
  sampling_.frequency_penalty = fields.frequency_penalty.value_or(0.0f);
  sampling_.repetition_penalty = fields.repetition_penalty.value_or(1.0f);
  sampling_.min_tokens = min_tokens;
  sampling_.ignore_eos = fields.ignore_eos.value_or(false);
  return absl::OkStatus();
}

absl::Status NewRequest::CheckLists(const RequestFields& fields, const ModelLimits& limits) {
  PAGODA_RETURN_IF_ERROR(
      CheckCount("stop_token_ids", fields.stop_token_ids.size(), ModelLimits::kMaxStopTokenIds));
  PAGODA_RETURN_IF_ERROR(CheckTokens("stop_token_ids", fields.stop_token_ids, limits));
  PAGODA_RETURN_IF_ERROR(
      CheckCount("logit_bias", fields.logit_bias.size(), ModelLimits::kMaxLogitBiases));
  for (const base::LogitBias& entry : fields.logit_bias) {
    PAGODA_RETURN_IF_ERROR(CheckToken("logit_bias", entry.token, limits));
    const bool in_range = std::abs(entry.bias) <= ModelLimits::kMaxLogitBias;
    PAGODA_RETURN_IF_ERROR(CheckFloat("logit_bias", entry.bias, in_range, "from -100 to 100"));
  }
  stop_token_ids_ = fields.stop_token_ids;
  logit_bias_ = fields.logit_bias;
  std::sort(logit_bias_.begin(), logit_bias_.end(),
            [](const auto& a, const auto& b) { return a.token < b.token; });
  const auto twice =
      std::adjacent_find(logit_bias_.begin(), logit_bias_.end(),
                         [](const auto& a, const auto& b) { return a.token == b.token; });
  if (twice != logit_bias_.end()) {
    return base::FieldError("logit_bias", absl::StrCat("token ", twice->token, " is named twice"));
  }
  return absl::OkStatus();
}

absl::Status NewRequest::CheckLogprobs(const RequestFields& fields, const ModelLimits& limits) {
  PAGODA_RETURN_IF_ERROR(CheckLogprobCount("logprobs", fields.logprobs));
  PAGODA_RETURN_IF_ERROR(CheckLogprobCount("prompt_logprobs", fields.prompt_logprobs));
  const auto& ids = fields.logprob_token_ids;
  PAGODA_RETURN_IF_ERROR(CheckCount("logprob_token_ids", ids.size(), base::kMaxLogprobTokenIds));
  PAGODA_RETURN_IF_ERROR(CheckTokens("logprob_token_ids", ids, limits));
  if (!ids.empty() && fields.logprobs.has_value() && *fields.logprobs != std::ssize(ids)) {
    return Refuse("logprobs", *fields.logprobs,
                  absl::StrCat("beside logprob_token_ids their number, here ", ids.size()));
  }
  sampling_.logprobs = fields.logprobs;
  if (!ids.empty()) sampling_.logprobs = static_cast<std::int32_t>(ids.size());
  sampling_.prompt_logprobs = fields.prompt_logprobs;
  logprob_token_ids_ = ids;
  return absl::OkStatus();
}

absl::Status NewRequest::AllowOnly(std::span<const base::TokenId> tokens,
                                   const ModelLimits& limits) {
  constexpr std::string_view kField = "allowed_token_ids";
  if (tokens.empty()) {
    return base::FieldError(kField, "is empty, so nothing could be drawn; leave it out for all");
  }
  PAGODA_RETURN_IF_ERROR(CheckTokens(kField, tokens, limits));
  allowed_words_.assign(NumWords(limits), 0);
  for (const base::TokenId token : tokens) SetBit(allowed_words_, token);
  return CheckSomethingCanBeDrawn(kField, limits);
}

absl::Status NewRequest::AttachBadWords(std::span<const std::vector<base::TokenId>> words,
                                        const ModelLimits& limits) {
  constexpr std::string_view kField = "bad_words";
  std::size_t num_entries = 0;
  for (const auto& word : words) {
    PAGODA_CHECK(!word.empty());
    PAGODA_RETURN_IF_ERROR(CheckTokens(kField, word, limits));
    num_entries += 1 + word.size();
  }
  if (num_entries > static_cast<std::size_t>(base::kMaxBadWordEntries)) {
    return base::FieldError(
        kField, absl::StrCat("the words and their tokens make ", num_entries, " entries, at most ",
                             base::kMaxBadWordEntries, " are possible"));
  }
  bad_words_.clear();
  for (const auto& word : words) {
    bad_words_.push_back(static_cast<base::TokenId>(word.size()));
    bad_words_.insert(bad_words_.end(), word.begin(), word.end());
  }
  return CheckSomethingCanBeDrawn(kField, limits);
}

// Before anything was generated; words of several tokens may still rule out the last one later.
absl::Status NewRequest::CheckSomethingCanBeDrawn(std::string_view field,
                                                  const ModelLimits& limits) const {
  std::vector<std::uint32_t> left = allowed_words_;
  if (left.empty()) {
    left.assign(NumWords(limits), 0);
    for (base::TokenId token = 0; token < limits.vocabulary_size; ++token) SetBit(left, token);
  }
  for (std::size_t i = 0; i < bad_words_.size(); i += 1 + bad_words_[i]) {
    if (bad_words_[i] == 1) ClearBit(left, bad_words_[i + 1]);
  }
  if (sampling_.min_tokens > 0) {
    for (const base::TokenId token : stop_token_ids_) ClearBit(left, token);
    if (!sampling_.ignore_eos) {
      for (const base::TokenId token : limits.eos_tokens) ClearBit(left, token);
    }
  }
  if (std::ranges::any_of(left, [](std::uint32_t word) { return word != 0; })) {
    return absl::OkStatus();
  }
  return base::FieldError(field, "with the other parameters no token is left that could be drawn");
}

absl::Status NewRequest::AttachPrompt(std::span<const base::TokenId> prompt,
                                      const ModelLimits& limits) {
  if (prompt.empty()) {
    return base::WithReason(base::FieldError("prompt", "is empty, at least 1 token is needed"),
                            kReasonEmptyPrompt);
  }
  const auto length = static_cast<std::int64_t>(prompt.size());
  const std::int64_t asked = length + asked_max_tokens_.value_or(1);
  if (asked > limits.max_model_len) {
    return base::WithReason(
        base::FieldError(length < limits.max_model_len && asked_max_tokens_.has_value()
                             ? "max_tokens"
                             : "prompt",
                         absl::StrCat(length, " prompt tokens and ", asked_max_tokens_.value_or(1),
                                      " to generate make ", asked, ", the context holds ",
                                      limits.max_model_len)),
        kReasonContextTooLong);
  }
  PAGODA_RETURN_IF_ERROR(CheckTokens("prompt", prompt, limits));
  const std::int64_t n = num_choices();
  const std::int64_t needed =
      BlocksNeeded(length, asked_max_tokens_.value_or(1), n, limits.block_size);
  if (needed > limits.capacity_blocks) {
    return base::WithReason(
        absl::FailedPreconditionError(
            absl::StrCat("the request needs ", needed, " KV blocks of ", limits.block_size,
                         " tokens", n > 1 ? absl::StrCat(" for its ", n, " choices") : "",
                         ", its tenant can hold ", limits.capacity_blocks,
                         "; shorten the prompt or max_tokens, or start the server with a larger "
                         "--kv-cache-memory, or larger reserve-blocks of an isolated tenant")),
        kReasonKvPoolTooSmall);
  }
  const std::int64_t rest =
      std::min<std::int64_t>(limits.max_model_len - length,
                             LongestReply(length, n, limits.capacity_blocks, limits.block_size));
  const std::int64_t max_tokens = asked_max_tokens_.value_or(static_cast<std::int32_t>(rest));
  if (sampling_.min_tokens > max_tokens) {
    return Refuse("min_tokens", sampling_.min_tokens,
                  absl::StrCat("from 0 to what the context leaves, here ", max_tokens));
  }
  max_tokens_ = static_cast<std::int32_t>(max_tokens);
  prompt_length_ = static_cast<std::int32_t>(length);
  for (Choice& choice : choices_) {
    choice.tokens.reserve(static_cast<std::size_t>(length + max_tokens));
    choice.tokens.assign(prompt.begin(), prompt.end());
    choice.keys.reserve(static_cast<std::size_t>((length + max_tokens) / limits.block_size));
  }
  return absl::OkStatus();
}

void NewRequest::AttachKeys(const NamespaceKey& key, const BlockKeyer& keyer) {
  PAGODA_CHECK(prompt_length_ > 0);
  PAGODA_CHECK(keys().empty());
  cache_namespace = key;
  epoch_ = keyer.epoch();
  has_keys_ = true;
  ExtendKeys(keyer);
  for (Choice& other : choices().subspan(1)) {
    other.keys.assign(keys().begin(), keys().end());
  }
}

std::int32_t NewRequest::WorstCaseBlocks(std::int32_t block_size) const {
  return static_cast<std::int32_t>(
      BlocksNeeded(prompt_length_, max_tokens_, num_choices(), block_size));
}

}  // namespace pagoda::scheduler
