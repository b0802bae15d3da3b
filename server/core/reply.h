#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
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
  double queue_ms = 0;        // until the engine had it: waiting for and work of a text worker
  double first_token_ms = 0;  // 0 when there was none
  double total_ms = 0;
};

// What has become final of one choice since the last message.
struct ChoicePart {
  std::string text;
  std::vector<base::TokenId> tokens;

  bool has_content() const { return !text.empty() || !tokens.empty(); }
  // Keeps the capacity.
  void Clear() {
    text.clear();
    tokens.clear();
  }
  void Append(const ChoicePart& more) {
    text += more.text;
    tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
  }
};

// What a door sends as one message: everything that has become final since the last one.
struct ReplyPart {
  std::vector<ChoicePart> choices = std::vector<ChoicePart>(1);  // by index
  std::optional<ReplyEnd> end;                                   // set in the last part only

  bool has_content() const { return std::ranges::any_of(choices, &ChoicePart::has_content); }
  std::size_t num_tokens() const {
    std::size_t count = 0;
    for (const ChoicePart& choice : choices) count += choice.tokens.size();
    return count;
  }
  void Clear() {
    for (ChoicePart& choice : choices) choice.Clear();
    end.reset();
  }
  // Takes over what `more` has gained; its end is left to the caller.
  void Append(const ReplyPart& more) {
    if (choices.size() < more.choices.size()) choices.resize(more.choices.size());
    for (std::size_t i = 0; i < more.choices.size(); ++i) choices[i].Append(more.choices[i]);
  }
};

}  // namespace pagoda::server
