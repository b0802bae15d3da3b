#include "base/runtime/clock.h"

#include <chrono>

namespace pagoda::base {
namespace {

class SteadyClock final : public ClockSource {
 public:
  Instant Now() const override {
    const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
    return Instant::FromNanos(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count());
  }
};

}  // namespace

const ClockSource& SystemClock() {
  static const SteadyClock clock;
  return clock;
}

}  // namespace pagoda::base
