#include "client/load/load_options.h"

#include <gtest/gtest.h>

namespace pagoda::client {
namespace {

TEST(LoadOptions, ALengthIsOneNumberOrARange) {
  const auto fixed = ParseLengths("512");
  ASSERT_TRUE(fixed.has_value());
  EXPECT_EQ(fixed->least, 512);
  EXPECT_EQ(fixed->most, 512);
  const auto range = ParseLengths("100..500");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->least, 100);
  EXPECT_EQ(range->most, 500);
  for (const char* wrong :
       {"", "0", "-1", "x", "5x", "5..", "..5", "5..4", "1.5", "1...2", "0..3", "1..99999999999"}) {
    EXPECT_FALSE(ParseLengths(wrong).has_value()) << wrong;
  }
}

TEST(LoadOptions, AnOpenLoopHasAsManyCallersAsMayBeInFlight) {
  LoadOptions options;
  options.concurrency = 7;
  options.max_in_flight = 9;
  EXPECT_EQ(options.num_callers(), 7);
  options.rate = 2.0;
  EXPECT_EQ(options.num_callers(), 9);
}

}  // namespace
}  // namespace pagoda::client
