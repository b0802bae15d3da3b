#include "client/load/load_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace pagoda::client {
namespace {

LoadOptions Options(std::uint64_t seed) {
  LoadOptions options;
  options.input = {3, 9};
  options.output = {1, 4};
  options.shared_prefix = 5;
  options.seed = seed;
  return options;
}

TEST(LoadPlan, TheSameSeedAsksTheSameWhateverTheOrder) {
  const LoadPlan first(Options(7), 1000), second(Options(7), 1000), other(Options(8), 1000);
  int same_as_other = 0;
  for (std::int64_t i = 99; i >= 0; --i) {
    const PlannedRequest a = first.Request(i), b = second.Request(i);
    EXPECT_EQ(a.prompt, b.prompt);
    EXPECT_EQ(a.output_tokens, b.output_tokens);
    EXPECT_EQ(a.seed, b.seed);
    same_as_other += a.prompt == other.Request(i).prompt ? 1 : 0;
  }
  EXPECT_EQ(same_as_other, 0);
}

TEST(LoadPlan, LengthsCoverTheirRangeAndNothingElse) {
  const LoadPlan plan(Options(1), 50);
  std::set<std::size_t> inputs;
  std::set<std::int32_t> outputs;
  for (std::int64_t i = 0; i < 500; ++i) {
    const PlannedRequest request = plan.Request(i);
    inputs.insert(request.prompt.size());
    outputs.insert(request.output_tokens);
    EXPECT_LT(*std::max_element(request.prompt.begin(), request.prompt.end()), 50u);
  }
  EXPECT_EQ(inputs, (std::set<std::size_t>{8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(outputs, (std::set<std::int32_t>{1, 2, 3, 4}));
}

TEST(LoadPlan, ThePrefixIsSharedAndTheRestIsNot) {
  const LoadPlan plan(Options(3), 1'000'000);
  const PlannedRequest a = plan.Request(0), b = plan.Request(1);
  EXPECT_TRUE(std::equal(a.prompt.begin(), a.prompt.begin() + 5, b.prompt.begin()));
  EXPECT_NE(a.prompt[5], b.prompt[5]);
  EXPECT_NE(a.seed, b.seed);
}

TEST(ArrivalTimes, AreReproducibleAndNeverFall) {
  ArrivalTimes first(50.0, 11), second(50.0, 11), other(50.0, 12);
  std::int64_t last = 0;
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t offset = first.NextOffsetNanos();
    EXPECT_EQ(offset, second.NextOffsetNanos());
    differs = differs || offset != other.NextOffsetNanos();
    EXPECT_GE(offset, last);
    last = offset;
  }
  EXPECT_TRUE(differs);
}

// Exponential gaps: mean and deviation are both 1 / rate. Over n gaps the mean has a deviation of
// 1 / (rate sqrt n); six of them.
TEST(ArrivalTimes, GapsAreExponentialWithTheMeanOfTheRate) {
  constexpr int kGaps = 20'000;
  constexpr double kRate = 40.0;
  ArrivalTimes times(kRate, 5);
  double sum = 0, squares = 0;
  int longer_than_mean = 0;
  std::int64_t last = 0;
  for (int i = 0; i < kGaps; ++i) {
    const std::int64_t next = times.NextOffsetNanos();
    const double gap = static_cast<double>(next - last) * 1e-9 * kRate;
    last = next;
    sum += gap;
    squares += gap * gap;
    longer_than_mean += gap > 1.0 ? 1 : 0;
  }
  const double bound = 6.0 / std::sqrt(kGaps);
  EXPECT_NEAR(sum / kGaps, 1.0, bound);
  EXPECT_NEAR(squares / kGaps, 2.0, 6.0 * bound);
  EXPECT_NEAR(static_cast<double>(longer_than_mean) / kGaps, std::exp(-1.0), bound);
}

}  // namespace
}  // namespace pagoda::client
