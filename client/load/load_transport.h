#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/instant.h"
#include "client/load/load_plan.h"
#include "pagoda/v1/inference.pb.h"

namespace pagoda::client {

// When the tokens of one reply came. A message with k tokens after a gap g counts as k gaps of
// g / k. The first message gives the time of the first token and no gap: what lies between its own
// tokens was not seen.
class TokenTimes {
 public:
  void Take(base::Instant now, std::int64_t num_tokens);

  std::int64_t num_tokens() const { return num_tokens_; }
  // Requires: num_tokens() > 0.
  base::Instant first() const { return first_; }
  const std::vector<std::int64_t>& gaps_nanos() const { return gaps_nanos_; }

 private:
  std::int64_t num_tokens_ = 0;
  base::Instant first_, last_;
  std::vector<std::int64_t> gaps_nanos_;
};

// What became of one request.
struct CallOutcome {
  base::Instant sent, ended;
  TokenTimes tokens;
  std::string failure;  // the status code's name; empty: it finished
  v1::Receipt receipt;  // of one that finished
};

// How a load reaches a server. Threads: Call from one thread per caller; CancelAll from any.
class LoadTransport {
 public:
  virtual ~LoadTransport() = default;
  // Blocks until the reply has ended. `caller` is below LoadOptions::num_callers().
  virtual CallOutcome Call(std::int32_t caller, const PlannedRequest& request) = 0;
  // Ends the calls that run, and every later one, early.
  virtual void CancelAll() = 0;
};

// Where a load takes its time from. Threads: any.
class LoadPacer {
 public:
  virtual ~LoadPacer() = default;
  virtual base::Instant Now() const = 0;
  // Returns at `time`, or at once after Break.
  virtual void WaitUntil(base::Instant time) = 0;
  virtual void Break() = 0;
};

}  // namespace pagoda::client
