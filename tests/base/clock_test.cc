#include "base/runtime/clock.h"

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(SystemClock, NeverRunsBackwards) {
  Instant last = SystemClock().Now();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = SystemClock().Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace pagoda::base
