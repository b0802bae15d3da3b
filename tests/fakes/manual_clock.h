#pragma once

#include <atomic>
#include <cstdint>

#include "base/runtime/clock.h"

namespace pagoda::fakes {

// Time that moves only when a test says so. It begins far in the machine's future, so that a thread
// that waits for one of its instants on the real clock waits until it is woken. Threads: any.
class ManualClock final : public base::ClockSource {
 public:
  base::Instant Now() const override { return base::Instant::FromNanos(nanos_.load()); }
  void AdvanceNanos(std::int64_t nanos) { nanos_ += nanos; }
  void AdvanceMillis(std::int64_t millis) { nanos_ += millis * 1'000'000; }

 private:
  static constexpr std::int64_t kStart = std::int64_t{1} << 61;
  std::atomic<std::int64_t> nanos_ = kStart;
};

}  // namespace pagoda::fakes
