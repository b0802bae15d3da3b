#include "kernels/emulation/schedule.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::kernels::emulation {
namespace {

std::vector<std::uint32_t> Walk(const Schedule& schedule, std::uint32_t start, int steps) {
  ReadySet ready;
  for (const std::uint32_t i : {1u, 3u, 40u, 41u, 1030u}) ready.Add(i);
  Picker picker(schedule);
  std::vector<std::uint32_t> order;
  for (int i = 0; i < steps; ++i) {
    start = picker.Next(ready, start).value();
    order.push_back(start);
  }
  return order;
}

using Indices = std::vector<std::uint32_t>;

TEST(Schedule, ForwardAndReverseGoRoundByIndex) {
  EXPECT_EQ(Walk({.order = Order::kForward}, 3, 6), (Indices{40, 41, 1030, 1, 3, 40}));
  EXPECT_EQ(Walk({.order = Order::kReverse}, 3, 6), (Indices{1, 1030, 41, 40, 3, 1}));
  EXPECT_EQ(Walk({.order = Order::kForward}, 31, 1), (Indices{40}));
  EXPECT_EQ(Walk({.order = Order::kReverse}, 32, 1), (Indices{3}));
}

TEST(Schedule, GreedyStaysInAWarpWhileItCanRun) {
  EXPECT_EQ(Walk({.order = Order::kGreedy}, 41, 3), (Indices{40, 40, 40}));
  EXPECT_EQ(Walk({.order = Order::kGreedyReverse}, 40, 3), (Indices{41, 41, 41}));
  EXPECT_EQ(Walk({.order = Order::kGreedy}, 70, 1), (Indices{1030}));
  EXPECT_EQ(Walk({.order = Order::kGreedyReverse}, 70, 1), (Indices{41}));
}

TEST(Schedule, RandomReachesEveryThreadAndDependsOnItsSeedAlone) {
  const auto first = Walk({.order = Order::kRandom, .seed = 7}, 0, 200);
  EXPECT_EQ(first, Walk({.order = Order::kRandom, .seed = 7}, 0, 200));
  EXPECT_NE(first, Walk({.order = Order::kRandom, .seed = 8}, 0, 200));
  EXPECT_EQ(std::set<std::uint32_t>(first.begin(), first.end()).size(), 5u);
}

TEST(Schedule, NobodyIsNextWhenNobodyIsReady) {
  ReadySet ready;
  ready.Add(5);
  ready.Remove(5);
  for (const Order order :
       {Order::kForward, Order::kReverse, Order::kRandom, Order::kGreedy, Order::kGreedyReverse}) {
    EXPECT_FALSE(Picker({.order = order}).Next(ready, 5).has_value());
  }
}

}  // namespace
}  // namespace pagoda::kernels::emulation
