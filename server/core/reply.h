#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "scheduler/events.h"
#include "scheduler/receipt.h"

namespace pagoda::server {

// How a request ended. Beside an OK status all fields hold; beside any other the receipt does when
// `has_receipt`.
struct ReplyEnd {
  absl::Status status;
  scheduler::FinishReason reason = scheduler::FinishReason::kStop;
  std::optional<std::uint32_t> matched_stop;
  std::optional<base::TokenId> matched_stop_token;
  bool has_receipt = false;
  scheduler::Receipt receipt;
  std::uint64_t seed = 0;
  std::int32_t max_tokens = 0;
  // Wall time in milliseconds since the request was taken in.
  double queue_ms = 0;        // until the engine had it: waiting for and work of a text worker
  double first_token_ms = 0;  // 0 when there was none
  double total_ms = 0;
};

// What a door sends as one message: everything that has become final since the last one.
struct ReplyPart {
  std::string text;
  std::vector<base::TokenId> tokens;
  std::optional<ReplyEnd> end;  // set in the last part only

  bool has_content() const { return !text.empty() || !tokens.empty(); }
};

}  // namespace pagoda::server
