#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "base/token_score.h"
#include "scheduler/events.h"
#include "scheduler/receipt.h"

namespace pagoda::server {

// How one choice ended.
struct ChoiceEnd {
  scheduler::FinishReason reason = scheduler::FinishReason::kStop;
  std::optional<std::uint32_t> matched_stop = {};
  std::optional<base::TokenId> matched_stop_token = {};
};

// How a request ended. Beside an OK status all fields hold; beside any other the receipt does when
// `has_receipt`.
struct ReplyEnd {
  absl::Status status;
  scheduler::FinishReason reason = scheduler::FinishReason::kStop;  // of what ended last
  std::vector<ChoiceEnd> choices;
  bool has_receipt = false;
  scheduler::Receipt receipt;
  std::uint64_t seed = 0;
  std::int32_t max_tokens = 0;
  // Wall time in milliseconds since the request was taken in.
  double queue_ms = 0;        // until its first step was planned; to the end when none was
  double first_token_ms = 0;  // 0 when there was none
  double total_ms = 0;
};

// Scores of tokens, with the array that their alternatives lie in.
struct ScoreList {
  std::vector<base::TokenScore> scores;
  std::vector<base::TokenLogprob> alternatives;

  void Reserve(std::size_t num_scores, std::size_t alternatives_each);
  // `from` is the array that `more` lies in.
  void Append(std::span<const base::TokenScore> more, std::span<const base::TokenLogprob> from);
  std::span<const base::TokenLogprob> AlternativesOf(const base::TokenScore& score) const {
    return std::span(alternatives).subspan(score.first_alternative, score.num_alternatives);
  }
  bool empty() const { return scores.empty(); }
  std::size_t size() const { return scores.size(); }
  void clear();
};

// What was asked about the prompt.
struct PromptPart {
  std::string text;  // with echo, whole
  std::vector<base::TokenId> tokens;
  ScoreList scores;  // of the second token on

  bool empty() const { return text.empty() && tokens.empty() && scores.empty(); }
  void Clear();
  void Append(const PromptPart& more);
};

// What has become final of one choice since the last message.
struct ChoicePart {
  std::string text;
  std::vector<base::TokenId> tokens;
  ScoreList scores;  // as many as tokens, when they were asked for

  bool has_content() const { return !text.empty() || !tokens.empty(); }
  // Keeps the capacity.
  void Clear();
  void Append(const ChoicePart& more);
};

// What a door sends as one message: everything that has become final since the last one.
struct ReplyPart {
  PromptPart prompt;
  std::vector<ChoicePart> choices = std::vector<ChoicePart>(1);  // by index
  std::optional<ReplyEnd> end;                                   // set in the last part only

  bool has_content() const {
    return !prompt.empty() || std::ranges::any_of(choices, &ChoicePart::has_content);
  }
  // What counts against the bound of an unread reply. An echo does not: the prompt bounds it.
  std::size_t num_counted() const;
  void Clear();
  // Takes over what `more` has gained; its end is left to the caller.
  void Append(const ReplyPart& more);
};

}  // namespace pagoda::server
