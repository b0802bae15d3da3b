#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace pagoda::base {

// A point on the monotonic clock, in nanoseconds. Passed in wherever time matters; nothing below
// base/runtime reads a clock.
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant FromNanos(std::int64_t nanos) { return Instant(nanos); }
  static constexpr Instant Never() { return Instant(std::numeric_limits<std::int64_t>::max()); }
  constexpr std::int64_t nanos() const { return nanos_; }
  constexpr bool is_never() const { return *this == Never(); }
  friend constexpr auto operator<=>(Instant, Instant) = default;

  // Saturates at Never(), so that "no deadline" stays "no deadline".
  constexpr Instant PlusNanos(std::int64_t delta) const {
    if (is_never() || (delta > 0 && nanos_ > Never().nanos_ - delta)) return Never();
    return Instant(nanos_ + delta);
  }
  constexpr Instant PlusMillis(std::int64_t delta) const { return PlusNanos(delta * 1'000'000); }
  constexpr std::int64_t NanosSince(Instant earlier) const { return nanos_ - earlier.nanos_; }

 private:
  constexpr explicit Instant(std::int64_t nanos) : nanos_(nanos) {}
  std::int64_t nanos_ = 0;
};

}  // namespace pagoda::base
