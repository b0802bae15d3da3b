#include "model/logit_rules.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/bits.h"
#include "base/check.h"
#include "base/token_score.h"

namespace pagoda::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kInPrompt = std::uint32_t{1} << 31;

void Mask(float& logit, LogitRules::Effect& effect) {
  effect.hides_fault |= !(logit < kInfinity);
  effect.hides_token |= logit > -kInfinity;
  logit = -kInfinity;
}

// The longest of the words.
std::size_t LongestWord(std::span<const base::TokenId> words) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < words.size(); i += 1 + words[i]) {
    longest = std::max<std::size_t>(longest, words[i]);
  }
  return longest;
}

// A penalty bends a logit; it does not make it infinite.
float Bounded(float logit) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return std::clamp(logit, -kMost, kMost);
}

}  // namespace

LogitRules::LogitRules(std::uint32_t vocabulary_size, std::size_t max_masked_tokens)
    : vocabulary_size_(vocabulary_size) {
  logit_bias_.reserve(base::kMaxLogitBiases);
  masked_below_min_tokens_.reserve(max_masked_tokens);
  allowed_words_.reserve(base::DivUp<std::size_t>(vocabulary_size, 32));
  bad_words_.reserve(base::kMaxBadWordEntries);
  logprob_token_ids_.reserve(base::kMaxLogprobTokenIds);
  counts_.reserve(vocabulary_size);  // touched by the first request with penalties
  recent_.reserve(base::kMaxBadWordEntries);
}

void LogitRules::Open(const SamplerOpening& opening) {
  const auto num_prompt_tokens = static_cast<std::size_t>(opening.num_prompt_tokens);
  PAGODA_CHECK(num_prompt_tokens <= opening.history.size());
  is_open_ = true;
  params_ = opening.params;
  logit_bias_.assign(opening.logit_bias.begin(), opening.logit_bias.end());
  masked_below_min_tokens_.assign(opening.masked_below_min_tokens.begin(),
                                  opening.masked_below_min_tokens.end());
  allowed_words_.assign(opening.allowed_words.begin(), opening.allowed_words.end());
  bad_words_.assign(opening.bad_words.begin(), opening.bad_words.end());
  logprob_token_ids_.assign(opening.logprob_token_ids.begin(), opening.logprob_token_ids.end());
  for (const base::LogitBias& entry : logit_bias_) PAGODA_CHECK(entry.token < vocabulary_size_);
  for (const base::TokenId token : masked_below_min_tokens_) PAGODA_CHECK(token < vocabulary_size_);
  PAGODA_CHECK(allowed_words_.empty() || allowed_words_.size() * 32 >= vocabulary_size_);

  const std::size_t longest = LongestWord(bad_words_);
  num_recent_ = longest > 0 ? longest - 1 : 0;
  recent_.clear();
  num_generated_ = 0;
  if (params_.has_penalties()) {
    counts_.assign(vocabulary_size_, 0);
    for (const base::TokenId token : opening.history.first(num_prompt_tokens)) {
      PAGODA_CHECK(token < vocabulary_size_);
      counts_[token] |= kInPrompt;
    }
  }
  for (const base::TokenId token : opening.history.subspan(num_prompt_tokens)) Count(token);
}

void LogitRules::Count(base::TokenId token) {
  PAGODA_CHECK(token < vocabulary_size_);
  ++num_generated_;
  if (params_.has_penalties()) ++counts_[token];
  if (num_recent_ == 0) return;
  if (recent_.size() == num_recent_) recent_.erase(recent_.begin());
  recent_.push_back(token);
}

bool LogitRules::changes_logits() const {
  const bool masks_ends = num_generated_ < params_.min_tokens && !masked_below_min_tokens_.empty();
  return masks_ends || !allowed_words_.empty() || !bad_words_.empty() || !logit_bias_.empty() ||
         params_.has_penalties();
}

LogitRules::Effect LogitRules::Apply(std::span<float> logits) const {
  PAGODA_CHECK(logits.size() == vocabulary_size_);
  Effect effect;
  MaskWhatIsNotAllowed(logits, effect);
  MaskBadWords(logits, effect);
  MaskEnds(logits, effect);
  for (const base::LogitBias& entry : logit_bias_) logits[entry.token] += entry.bias;
  if (params_.has_penalties()) Penalise(logits);
  return effect;
}

void LogitRules::MaskWhatIsNotAllowed(std::span<float> logits, Effect& effect) const {
  if (allowed_words_.empty()) return;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    if ((allowed_words_[token / 32] >> (token % 32) & 1) == 0) Mask(logits[token], effect);
  }
}

// Of a word whose other tokens were just generated, the last may not follow. The prompt does not
// count.
void LogitRules::MaskBadWords(std::span<float> logits, Effect& effect) const {
  const std::span<const base::TokenId> words(bad_words_);
  for (std::size_t i = 0; i < words.size(); i += 1 + words[i]) {
    const auto word = words.subspan(i + 1, words[i]);
    const auto before = word.first(word.size() - 1);
    if (before.size() > recent_.size()) continue;
    if (std::equal(before.begin(), before.end(), recent_.end() - std::ssize(before))) {
      Mask(logits[word.back()], effect);
    }
  }
}

void LogitRules::MaskEnds(std::span<float> logits, Effect& effect) const {
  if (num_generated_ >= params_.min_tokens) return;
  for (const base::TokenId token : masked_below_min_tokens_) Mask(logits[token], effect);
}

// Repetition counts prompt and generated tokens, frequency and presence only generated ones.
void LogitRules::Penalise(std::span<float> logits) const {
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const std::uint32_t count = counts_[token];
    if (count == 0) continue;
    float& logit = logits[token];
    if (!std::isfinite(logit)) continue;
    const float factor = params_.repetition_penalty;
    logit = Bounded(logit > 0.0f ? logit / factor : logit * factor);
    const std::uint32_t generated = count & ~kInPrompt;
    if (generated == 0) continue;
    logit -= params_.frequency_penalty * static_cast<float>(generated);
    logit -= params_.presence_penalty;
  }
}

}  // namespace pagoda::model
