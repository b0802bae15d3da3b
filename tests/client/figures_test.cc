#include "client/figures.h"

#include <gtest/gtest.h>

namespace pagoda::client {
namespace {

TEST(Figures, AreGroupedByThree) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(134515008), "134,515,008");
  EXPECT_EQ(Grouped(-1234567), "-1,234,567");
  EXPECT_EQ(Grouped(-123), "-123");
}

TEST(Figures, AreShortenedToTheirUnit) {
  EXPECT_EQ(Abbreviated(999), "999");
  EXPECT_EQ(Abbreviated(134515008), "134.5 M");
  EXPECT_EQ(Abbreviated(8'030'261'248), "8.0 G");
  EXPECT_EQ(Fixed(2.345, 1), "2.3");
}

}  // namespace
}  // namespace pagoda::client
