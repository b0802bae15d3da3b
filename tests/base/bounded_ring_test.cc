#include "base/bounded_ring.h"

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(BoundedRing, GivesItemsBackInOrderAcrossTheWrap) {
  BoundedRing<int> ring(3);
  int next_in = 0;
  int next_out = 0;
  for (int round = 0; round < 10; ++round) {
    while (ring.TryPush(int{next_in})) ++next_in;
    ASSERT_TRUE(ring.full());
    EXPECT_EQ(ring.at(2), next_in - 1);
    EXPECT_EQ(ring.Pop(), next_out++);
    EXPECT_EQ(ring.Pop(), next_out++);
  }
}

TEST(BoundedRing, RefusesWhenFull) {
  BoundedRing<int> ring(1);
  EXPECT_TRUE(ring.TryPush(7));
  EXPECT_FALSE(ring.TryPush(8));
  EXPECT_EQ(ring.front(), 7);
}

TEST(BoundedRingDeathTest, PopOfAnEmptyRingAborts) {
  BoundedRing<int> ring(1);
  EXPECT_DEATH(ring.Pop(), "check failed: !empty\\(\\)");
}

}  // namespace
}  // namespace pagoda::base
