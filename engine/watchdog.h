#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/instant.h"
#include "engine/engine.h"

namespace pagoda::engine {

// Tells whether the engine still moves: a request that could run is live, and for `patience_millis`
// no step has ended and no request has finished. Judged by counters alone, so it needs nothing of
// the engine thread, which may hang. Owner and thread: whoever polls it (the server's monitor,
// about once a second).
class Watchdog {
 public:
  explicit Watchdog(std::int64_t patience_millis) : patience_millis_(patience_millis) {}

  // OK while all is well. Unavailable when nothing moves (it turns OK again if something does);
  // Internal once the engine has failed for good. The text says what waits, and for how long.
  absl::Status Observe(const EngineStats& stats, base::Instant now);

 private:
  const std::int64_t patience_millis_;
  std::int64_t last_progress_ =
      -1;  // steps, failed steps and finished requests when something last moved
  base::Instant quiet_since_;
};

}  // namespace pagoda::engine
