#include "base/instant.h"

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(Instant, NeverStaysNever) {
  EXPECT_TRUE(Instant::Never().PlusMillis(-5).is_never());
  EXPECT_TRUE(Instant::FromNanos(Instant::Never().nanos() - 1).PlusNanos(5).is_never());
}

TEST(Instant, OrdersAndMeasures) {
  const Instant start = Instant::FromNanos(10);
  EXPECT_LT(start, start.PlusNanos(1));
  EXPECT_EQ(start.PlusMillis(2).NanosSince(start), 2'000'000);
}

}  // namespace
}  // namespace pagoda::base
