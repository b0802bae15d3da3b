#include <algorithm>
#include <cmath>
#include <set>

#include "base/exact_math.h"
#include "tests/kernels/suite/kernel_suite.h"
#include "tests/kernels/suite/sampling_definition.h"

namespace pagoda::kernels {
namespace {

std::vector<SampleOutcome> Draw(Ops& ops, std::span<const SampleRow> rows) {
  std::vector<SampleOutcome> outcomes(rows.size());
  ops.Sample({rows, outcomes}, Stream{});
  EXPECT_TRUE(ops.device().Await(ops.device().Record(Stream{})).ok());
  return outcomes;
}

// All tokens that 400 positions draw.
std::set<base::TokenId> Drawn(Ops& ops, SampleRow row) {
  std::set<base::TokenId> drawn;
  for (row.position = 0; row.position < 400; ++row.position) {
    const SampleOutcome outcome = Draw(ops, {&row, 1})[0];
    EXPECT_TRUE(outcome.finite);
    drawn.insert(outcome.token);
  }
  return drawn;
}

TEST_P(KernelSuite, SamplingIsWhatTheDefinitionSays) {
  std::mt19937 random(61);
  for (int i = 0; i < 3'000; ++i) {
    const std::vector<float> logits = HardLogits(1 + random() % 70, random);
    const SampleRow row = RandomParameters(logits, random);
    const SampleOutcome found = Draw(*ops_, {&row, 1})[0];
    ASSERT_TRUE(found.finite);
    ASSERT_EQ(found.token, SamplingDefinition(row).Choose().token)
        << "row " << i << ": temperature " << row.temperature << ", top_p " << row.top_p
        << ", top_k " << row.top_k << ", min_p " << row.min_p << ", size " << logits.size();
  }
}

TEST_P(KernelSuite, SamplingOfALargeVocabularyEqualsTheReference) {
  std::mt19937 random(62);
  std::vector<std::vector<float>> logits;
  std::vector<SampleRow> rows;
  for (int i = 0; i < 24; ++i) {
    logits.push_back(HardLogits(i % 2 == 0 ? 49'152 : 10'001, random));
    rows.push_back(RandomParameters(logits.back(), random));
  }
  const auto found = Draw(*ops_, rows);
  const auto wanted = Draw(*reference_, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(found[i].token, wanted[i].token) << i;
    EXPECT_EQ(Draw(*ops_, {&rows[i], 1})[0].token, wanted[i].token) << i << " alone";
  }
}

TEST_P(KernelSuite, GreedyTakesTheLargestAndOfEqualOnesTheLowestId) {
  const std::vector<float> logits = {1.0f, -kInfinity, 5.0f, 5.0f, 4.0f};
  SampleRow row;
  row.logits = logits;
  row.temperature = 0.0f;
  row.top_k = 1;
  EXPECT_EQ(Draw(*ops_, {&row, 1})[0].token, 2u);
}

TEST_P(KernelSuite, VerySmallTemperaturesAreGreedyWithoutOverflow) {
  std::vector<float> logits(300, -30.0f);
  logits[77] = 30.0f;
  logits[78] = 29.9f;
  for (const float temperature : {1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-30f, 1e-45f}) {
    SampleRow row;
    row.logits = logits;
    row.temperature = temperature;
    EXPECT_EQ(Drawn(*ops_, row), std::set<base::TokenId>{77}) << temperature;
  }
}

TEST_P(KernelSuite, ThresholdsThatAreHitExactlyDecideAsWritten) {
  // Flat over 8: four weights before the fifth are exactly half of the total, which is not below
  // it.
  const std::vector<float> flat(8, 2.0f);
  SampleRow row;
  row.logits = flat;
  row.top_p = 0.5f;
  EXPECT_EQ(Drawn(*ops_, row), (std::set<base::TokenId>{0, 1, 2, 3}));
  row.top_p = std::nextafter(0.5f, 1.0f);
  EXPECT_EQ(Drawn(*ops_, row), (std::set<base::TokenId>{0, 1, 2, 3, 4}));
  row.top_p = 1e-30f;
  EXPECT_EQ(Drawn(*ops_, row), (std::set<base::TokenId>{0}));
  row.top_p = 1.0f;
  row.top_k = 3;
  EXPECT_EQ(Drawn(*ops_, row), (std::set<base::TokenId>{0, 1, 2}));
  // min_p in logit space: exactly at the logarithm is kept, one step below is not.
  const float edge = base::Log(0.25f);
  const std::vector<float> steps = {0.0f, edge, std::nextafter(edge, -1e9f)};
  row = {};
  row.logits = steps;
  row.min_p = 0.25f;
  EXPECT_EQ(Drawn(*ops_, row), (std::set<base::TokenId>{0, 1}));
}

TEST_P(KernelSuite, AtLeastOneTokenAlwaysSurvives) {
  std::vector<float> logits(100, -90.0f);
  logits[40] = 0.0f;
  SampleRow row;
  row.logits = logits;
  row.top_p = 1e-38f;
  row.top_k = 9'999'999;
  row.min_p = 1.0f;
  EXPECT_EQ(Drawn(*ops_, row), std::set<base::TokenId>{40});
}

TEST_P(KernelSuite, MaskedTokensAreNeverDrawn) {
  const std::vector<float> logits = {-kInfinity, 0.0f, -kInfinity, 0.0f};
  SampleRow row;
  row.logits = logits;
  row.temperature = 1e30f;
  EXPECT_EQ(Drawn(*ops_, row), (std::set<base::TokenId>{1, 3}));
}

TEST_P(KernelSuite, RowsThatAreNotFiniteSaySo) {
  for (const float temperature : {0.0f, 0.8f}) {
    const std::vector<float> bad[] = {{1.0f, kNan, 2.0f},
                                      {kNan},
                                      {1.0f, kInfinity},
                                      {-kInfinity, -kInfinity, -kInfinity},
                                      std::vector<float>(1'000, -kInfinity)};
    for (const std::vector<float>& logits : bad) {
      SampleRow row;
      row.logits = logits;
      row.temperature = temperature;
      const SampleOutcome outcome = Draw(*ops_, {&row, 1})[0];
      EXPECT_FALSE(outcome.finite);
      EXPECT_EQ(outcome.token, 0u);
    }
  }
}

TEST_P(KernelSuite, SeedPositionAndChoiceEachMatterAndNothingElseDoes) {
  const std::vector<float> flat(4'096, 0.0f);
  SampleRow row;
  row.logits = flat;
  const auto token = [&](std::uint64_t seed, std::uint32_t position, std::uint32_t choice) {
    row.seed = seed;
    row.position = position;
    row.choice = choice;
    return Draw(*ops_, {&row, 1})[0].token;
  };
  const base::TokenId base_token = token(1, 1, 1);
  EXPECT_EQ(token(1, 1, 1), base_token);
  EXPECT_NE(token(2, 1, 1), base_token);
  EXPECT_NE(token(std::uint64_t{1} << 40 | 1, 1, 1), base_token);
  EXPECT_NE(token(1, 2, 1), base_token);
  EXPECT_NE(token(1, 1, 2), base_token);
}

// Pearson's statistic over 7 degrees of freedom; 24.3 is passed once in a thousand. The draws are
// fixed by the seed.
TEST_P(KernelSuite, TokensComeAsOftenAsTheirProbabilitiesSay) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f, 0.5f, 1.5f, -0.5f, 0.25f};
  constexpr std::uint32_t kDraws = 20'000;
  std::vector<SampleRow> rows(kDraws);
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    rows[i].logits = logits;
    rows[i].temperature = 0.7f;
    rows[i].seed = 63;
    rows[i].position = i;
  }
  std::vector<double> counts(logits.size(), 0.0);
  for (const SampleOutcome& outcome : Draw(*ops_, rows)) counts[outcome.token] += 1;
  double total = 0;
  for (const float x : logits) total += std::exp(x / 0.7);
  double statistic = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = kDraws * std::exp(logits[i] / 0.7) / total;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(statistic, 24.3);
  EXPECT_GT(statistic, 0.5);
}

}  // namespace
}  // namespace pagoda::kernels
