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

absl::Status CheckCount(std::string_view field, std::size_t count, std::int32_t most) {
  if (count <= static_cast<std::size_t>(most)) return absl::OkStatus();
  return base::FieldError(field, absl::StrCat(count, " entries asked, at most ", most, " allowed"));
}

}  // namespace

absl::StatusOr<NewRequest> NewRequest::Create(const RequestFields& fields,
                                              const ModelLimits& limits, std::uint64_t drawn_seed) {
  NewRequest request;
  PAGODA_RETURN_IF_ERROR(request.CheckSampling(fields, limits));
  PAGODA_RETURN_IF_ERROR(request.CheckLists(fields, limits));
  const std::int32_t priority = fields.priority.value_or(0);
  if (priority < ModelLimits::kMinPriority || priority > ModelLimits::kMaxPriority) {
    return Refuse("priority", priority,
                  absl::StrCat("from ", ModelLimits::kMinPriority, " to ",
                               ModelLimits::kMaxPriority, ", lower first"));
  }
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
  for (const base::TokenId token : fields.stop_token_ids) {
    PAGODA_RETURN_IF_ERROR(CheckToken("stop_token_ids", token, limits));
  }
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
        base::FieldError(asked_max_tokens_.has_value() ? "max_tokens" : "prompt",
                         absl::StrCat(length, " prompt tokens and ", asked_max_tokens_.value_or(1),
                                      " to generate make ", asked, ", the context holds ",
                                      limits.max_model_len)),
        kReasonContextTooLong);
  }
  for (const base::TokenId token : prompt) {
    PAGODA_RETURN_IF_ERROR(CheckToken("prompt", token, limits));
  }
  const std::int64_t holdable = std::int64_t{limits.capacity_blocks} * limits.block_size;
  if (asked - 1 > holdable) {
    const std::int64_t needed = base::DivUp<std::int64_t>(asked - 1, limits.block_size);
    return base::WithReason(
        absl::FailedPreconditionError(
            absl::StrCat("the request needs ", needed, " KV blocks of ", limits.block_size,
                         " tokens, the pool can give it ", limits.capacity_blocks,
                         "; shorten the prompt or max_tokens, or start the server with a larger "
                         "--kv-cache-memory")),
        kReasonKvPoolTooSmall);
  }
  const std::int64_t rest = std::min<std::int64_t>(limits.max_model_len, holdable + 1) - length;
  const std::int64_t max_tokens = asked_max_tokens_.value_or(static_cast<std::int32_t>(rest));
  if (sampling_.min_tokens > max_tokens) {
    return Refuse("min_tokens", sampling_.min_tokens,
                  absl::StrCat("from 0 to what the context leaves, here ", max_tokens));
  }
  max_tokens_ = static_cast<std::int32_t>(max_tokens);
  prompt_length_ = static_cast<std::int32_t>(length);
  tokens_.reserve(static_cast<std::size_t>(length + max_tokens));
  tokens_.assign(prompt.begin(), prompt.end());
  keys_.reserve(static_cast<std::size_t>((length + max_tokens) / limits.block_size));
  return absl::OkStatus();
}

void NewRequest::AttachKeys(const NamespaceKey& key, const BlockKeyer& keyer) {
  PAGODA_CHECK(prompt_length_ > 0);
  PAGODA_CHECK(keys_.empty());
  cache_namespace = key;
  epoch_ = keyer.epoch();
  has_keys_ = true;
  ExtendKeys(keyer);
}

std::int32_t NewRequest::WorstCaseBlocks(std::int32_t block_size) const {
  return base::DivUp(prompt_length_ + max_tokens_ - 1, block_size);
}

}  // namespace pagoda::scheduler
