#include "client/load/samples.h"

#include <gtest/gtest.h>

namespace pagoda::client {
namespace {

constexpr std::int64_t kMilli = 1'000'000;

TEST(Samples, PercentilesAreMeasuredValuesByNearestRank) {
  Samples samples(1000);
  for (std::int64_t i = 100; i >= 1; --i) samples.Add(i * kMilli);
  const Summary found = samples.Summarize();
  EXPECT_EQ(found.count, 100);
  EXPECT_EQ(found.not_kept, 0);
  EXPECT_DOUBLE_EQ(found.mean, 50.5);
  EXPECT_DOUBLE_EQ(found.p50, 50.0);
  EXPECT_DOUBLE_EQ(found.p90, 90.0);
  EXPECT_DOUBLE_EQ(found.p99, 99.0);
  EXPECT_DOUBLE_EQ(found.max, 100.0);
}

TEST(Samples, OneSampleIsEveryPercentile) {
  Samples samples(10);
  samples.Add(7 * kMilli);
  const Summary found = samples.Summarize();
  EXPECT_DOUBLE_EQ(found.p50, 7.0);
  EXPECT_DOUBLE_EQ(found.p99, 7.0);
  EXPECT_EQ(Samples(10).Summarize().count, 0);
}

TEST(Samples, BeyondTheLimitTheyAreCountedAndSaidToBeMissing) {
  Samples samples(4);
  for (int i = 1; i <= 10; ++i) samples.Add(i * kMilli);
  const Summary found = samples.Summarize();
  EXPECT_EQ(found.count, 10);
  EXPECT_EQ(found.not_kept, 6);
  EXPECT_DOUBLE_EQ(found.mean, 5.5);
  EXPECT_DOUBLE_EQ(found.max, 10.0);
  EXPECT_DOUBLE_EQ(found.p50, 2.0);
}

TEST(Samples, MergingIsAddingAll) {
  Samples a(2), b(2), none(2);
  a.Add(-3 * kMilli);
  b.Add(5 * kMilli);
  b.Add(1 * kMilli);
  b.Add(9 * kMilli);
  a.Merge(none);
  a.Merge(b);
  const Summary found = a.Summarize();
  EXPECT_EQ(found.count, 4);
  EXPECT_EQ(found.not_kept, 1);
  EXPECT_DOUBLE_EQ(found.max, 9.0);
  EXPECT_DOUBLE_EQ(found.mean, 3.0);
  EXPECT_DOUBLE_EQ(found.p50, 1.0);
}

}  // namespace
}  // namespace pagoda::client
