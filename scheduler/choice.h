#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "scheduler/block_keys.h"

namespace pagoda::scheduler {

enum class FinishReason : std::uint8_t {
  kStop,       // EOS, stop id or stop string
  kLength,     // max_tokens
  kCancelled,  // by the caller
  kDeadline,
  kSlowConsumer,
  kNonFinite,       // the model's logits were not finite
  kNothingAllowed,  // the request's own masks left no token to draw
  kFailed,          // the request's step failed twice, the second time alone
  kShutdown,        // the drain's grace ended
};

// Progress of a choice's stop condition, and where it ended the text; plain data, kept across
// preemption and in the snapshot. The engine's: the scheduler only keeps it.
struct StopProgress {
  std::uint32_t state = 0;
  std::uint32_t held_bytes = 0;
  std::uint64_t text_bytes =
      0;  // generated so far, before UTF-8 repair; counted only with a stop condition
  std::uint32_t grammar_state = 0;

  // Of the end. A choice that no stop ended shows all it has.
  static constexpr std::uint64_t kNoTextLimit = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t text_end = kNoTextLimit;  // the text ends here (a stop string is cut off)
  std::int32_t matched_stop = -1;         // index of the stop string, or -1
  // EOS or stop id that ended it, or -1. It is the last of the tokens, and none of its bytes are
  // text: with a stop condition text_end says so, without one the reader leaves them out.
  std::int64_t matched_stop_token = -1;
};

// One of the n replies to a request. Travels inside the request, with buffers that were allocated
// for its whole length before the request was queued.
struct Choice {
  std::vector<base::TokenId> tokens;   // prompt, then every accepted token
  std::optional<base::SlotId> slot;    // while it runs
  std::optional<FinishReason> finish;  // absent: open
  // Tokens ever planned: what lies below is recomputed. While it runs, its sequence counts on.
  std::int32_t high_water = 0;
  std::vector<BlockKey> keys;  // of the full blocks of `tokens`, as far as they are needed
  StopProgress stop;

  bool is_open() const { return !finish.has_value(); }
  std::int32_t num_known() const { return static_cast<std::int32_t>(tokens.size()); }
};

}  // namespace pagoda::scheduler
