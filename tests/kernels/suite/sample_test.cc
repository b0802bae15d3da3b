#include <algorithm>
#include <cmath>
#include <set>

#include "base/counter_rng.h"
#include "base/exact_math.h"
#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Int128 = __int128;

// The definition of README part 3, token by token: no sort, no threshold, integers of 128 bits for
// top-p, double for the race.
class Oracle {
 public:
  explicit Oracle(const SampleRow& row) : row_(row) {
    const float top = *std::max_element(row.logits.begin(), row.logits.end());
    for (const float x : row.logits) {
      z_.push_back((x - top) / row.temperature);
      weights_.push_back(base::Exp(z_.back()));
    }
  }

  SampleOutcome Choose() const {
    std::vector<bool> kept(z_.size(), true);
    if (row_.min_p > 0) Keep(kept, [this](std::size_t i, auto) { return PassesMinP(i); });
    if (row_.top_k > 0) {
      Keep(kept, [this](std::size_t i, const auto& from) { return RankOf(i, from) < row_.top_k; });
    }
    if (row_.top_p < 1) {
      Keep(kept, [this](std::size_t i, const auto& from) { return PassesTopP(i, from); });
    }
    SampleOutcome best;
    float least = kInfinity;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) continue;
      const auto arrival = static_cast<float>(Variate(i) / double{weights_[i]});
      if (arrival < least) {
        least = arrival;
        best.token = static_cast<base::TokenId>(i);
      }
    }
    return best;
  }

 private:
  template <typename Predicate>
  void Keep(std::vector<bool>& kept, Predicate predicate) const {
    const std::vector<bool> before = kept;
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = before[i] && predicate(i, before);
  }
  bool PassesMinP(std::size_t i) const { return z_[i] >= base::Log(row_.min_p); }
  std::int64_t RankOf(std::size_t i, const std::vector<bool>& from) const {
    std::int64_t rank = 0;
    for (std::size_t j = 0; j < z_.size(); ++j) {
      rank += from[j] && (z_[j] > z_[i] || (z_[j] == z_[i] && j < i)) ? 1 : 0;
    }
    return rank;
  }
  Int128 Fixed(std::size_t i) const {
    return static_cast<Int128>(std::ldexp(double{weights_[i]}, 40));
  }
  // The sum before the token is below top_p * total: an integer is below a number iff it is below
  // its ceiling.
  bool PassesTopP(std::size_t i, const std::vector<bool>& from) const {
    Int128 before = 0;
    Int128 total = 0;
    for (std::size_t j = 0; j < z_.size(); ++j) {
      if (!from[j]) continue;
      total += Fixed(j);
      if (weights_[j] > weights_[i] || (weights_[j] == weights_[i] && j < i)) before += Fixed(j);
    }
    constexpr int kShift = 60;  // top_p >= 2^-36 in these tests
    const auto scaled = static_cast<Int128>(std::ldexp(double{row_.top_p}, kShift));
    return (before << kShift) < scaled * total;
  }
  double Variate(std::size_t i) const {
    const auto id = static_cast<std::uint32_t>(i);
    const auto words = base::Philox4x32({row_.position, row_.choice, id / 4, 0}, row_.seed);
    const double exact = double{static_cast<float>(words[id % 4])} * 0x1p-32 + 0x1p-33;
    const float v = std::min(static_cast<float>(exact), 1.0f - 0x1p-24f);
    return base::NegLog1m(v);
  }

  const SampleRow& row_;
  std::vector<float> z_, weights_;
};

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

SampleRow RandomParameters(std::span<const float> logits, std::mt19937& random) {
  constexpr float kTemperatures[] = {1.0f, 0.3f, 2.0f, 1e-3f, 100.0f};
  constexpr float kTopP[] = {1.0f, 0.9f, 0.5f, 0.25f, 1e-9f};
  constexpr std::int32_t kTopK[] = {0, -1, 1, 3, 20, 9'999'999};
  constexpr float kMinP[] = {0.0f, 0.05f, 0.5f, 1.0f};
  SampleRow row;
  row.logits = logits;
  row.temperature = kTemperatures[random() % 5];
  row.top_p = kTopP[random() % 5];
  row.top_k = kTopK[random() % 6];
  row.min_p = kMinP[random() % 4];
  row.seed = (std::uint64_t{random()} << 32) | random();
  row.position = static_cast<std::uint32_t>(random());
  row.choice = static_cast<std::uint32_t>(random()) % 3;
  return row;
}

// Rows of every kind: spread, full of ties, flat, one-hot, masked.
std::vector<float> HardLogits(std::size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0f, 4.0f);
  const auto kind = random() % 5;
  std::vector<float> logits(size, kind == 3 ? -50.0f : 0.25f);
  for (float& x : logits) {
    if (kind == 0) x = normal(random);
    if (kind == 1) x = static_cast<float>(random() % 4);
    if (kind == 4) x = random() % 3 == 0 ? normal(random) : -kInfinity;
  }
  if (kind >= 3) logits[random() % size] = 3.0f;
  return logits;
}

TEST_P(KernelSuite, SamplingIsWhatTheDefinitionSays) {
  std::mt19937 random(61);
  for (int i = 0; i < 3'000; ++i) {
    const std::vector<float> logits = HardLogits(1 + random() % 70, random);
    const SampleRow row = RandomParameters(logits, random);
    const SampleOutcome found = Draw(*ops_, {&row, 1})[0];
    ASSERT_TRUE(found.finite);
    ASSERT_EQ(found.token, Oracle(row).Choose().token)
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
