#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/instant.h"
#include "client/load/load_transport.h"
#include "client/load/samples.h"

namespace pagoda::client {

// Times kept of each kind over a whole run: 32 MiB a kind.
inline constexpr std::size_t kMaxStoredSamples = std::size_t{1} << 22;

// Sums over receipts.
struct ReceiptSums {
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, discarded_tokens = 0;
  std::int64_t preemptions = 0, queue_steps = 0, prefill_steps = 0, decode_steps = 0;
  std::int64_t block_steps = 0;
};

// What requests came to. Replies that finished and those that failed are two populations: a failed
// one is in none of the times but `failed_after`. Times that are "intended" begin when the request
// should have been sent, so that a client that falls behind cannot hide it. One caller's, until
// merged.
struct LoadTally {
  explicit LoadTally(std::size_t limit);

  void Take(base::Instant intended, const CallOutcome& outcome);
  void Merge(const LoadTally& other);

  std::int64_t num_finished = 0, num_failed = 0;
  std::int64_t output_tokens = 0;  // of finished replies
  Samples first_token;             // from the intended time
  Samples first_token_from_send;
  Samples inter_token;
  Samples whole_reply;  // from the intended time
  Samples sent_late;    // send time less intended time
  Samples failed_after;
  std::map<std::string, std::int64_t> failures;  // by code
  ReceiptSums receipts;
};

}  // namespace pagoda::client
