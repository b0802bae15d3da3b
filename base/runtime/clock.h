#pragma once

#include "base/instant.h"

namespace pagoda::base {

// Where time comes from. Threads: any. Tests use fakes/manual_clock.h.
class ClockSource {
 public:
  virtual ~ClockSource() = default;
  virtual Instant Now() const = 0;
};

// The machine's monotonic clock; lives as long as the process.
const ClockSource& SystemClock();

}  // namespace pagoda::base
