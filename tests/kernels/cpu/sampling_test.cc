#include "kernels/cpu/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/counter_rng.h"
#include "base/exact_math.h"
#include "tests/kernels/cpu/cpu_fixture.h"

// The sampler against the rules of kernels/README.md written as plain sorts and loops.
namespace pagoda::kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ceil(factor * total) by doubling: exact, and slow.
std::uint64_t PlainCeilProduct(float factor, std::uint64_t total) {
  unsigned __int128 product = 0;
  bool rest = false;
  int exponent = 0;
  auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(factor, &exponent), 24));
  product = static_cast<unsigned __int128>(mantissa) * total;
  for (int i = exponent; i < 24; ++i) {
    rest = rest || (product & 1) != 0;
    product >>= 1;
  }
  return static_cast<std::uint64_t>(product) + (rest ? 1 : 0);
}

base::TokenId PlainSample(const SampleRow& row) {
  const auto n = row.logits.size();
  const float top = *std::max_element(row.logits.begin(), row.logits.end());
  std::vector<float> z(n), w(n);
  for (std::size_t i = 0; i < n; ++i) {
    z[i] = (row.logits[i] - top) / row.temperature + 0.0f;
    w[i] = base::Exp(z[i]);
  }
  std::vector<base::TokenId> kept(n);
  std::iota(kept.begin(), kept.end(), 0u);
  if (row.min_p > 0) {
    std::erase_if(kept, [&](base::TokenId i) { return !(z[i] >= base::Log(row.min_p)); });
  }
  if (row.top_k > 0) {
    std::sort(kept.begin(), kept.end(),
              [&](base::TokenId a, base::TokenId b) { return z[a] != z[b] ? z[a] > z[b] : a < b; });
    kept.resize(std::min(kept.size(), static_cast<std::size_t>(row.top_k)));
    std::sort(kept.begin(), kept.end());
  }
  if (row.top_p < 1.0f) {
    std::sort(kept.begin(), kept.end(),
              [&](base::TokenId a, base::TokenId b) { return w[a] != w[b] ? w[a] > w[b] : a < b; });
    std::uint64_t total = 0;
    const auto fixed = [&](base::TokenId i) {
      return static_cast<std::uint64_t>(std::floor(std::ldexp(static_cast<double>(w[i]), 40)));
    };
    for (const base::TokenId i : kept) total += fixed(i);
    const std::uint64_t limit = PlainCeilProduct(row.top_p, total);
    std::uint64_t before = 0;
    std::erase_if(kept, [&](base::TokenId i) {
      const bool stays = before < limit && fixed(i) > 0;
      before += fixed(i);
      return !stays;
    });
  }
  float best = kInfinity;
  base::TokenId chosen = 0;
  std::sort(kept.begin(), kept.end());
  for (const base::TokenId i : kept) {
    const auto words = base::Philox4x32({row.position, row.choice, i >> 2, 0}, row.seed);
    const float v =
        std::min(std::fma(static_cast<float>(words[i & 3]), 0x1p-32f, 0x1p-33f), 1.0f - 0x1p-24f);
    const float ratio = base::NegLog1m(v) / w[i];
    if (ratio < best) {
      best = ratio;
      chosen = i;
    }
  }
  return chosen;
}

class SamplingTest : public CpuOpsTest {
 protected:
  SampleOutcome Sample(const SampleRow& row) {
    SampleOutcome outcome;
    ops_->Sample({.rows = {&row, 1}, .outcomes = {&outcome, 1}}, {});
    return outcome;
  }
  std::mt19937 random_{20261129};
};

TEST_P(SamplingTest, EveryMixOfParametersChoosesAsThePlainRules) {
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(round);
    std::vector<float> logits(1 + random_() % 300);
    const int kind = static_cast<int>(random_() % 4);  // wide, with ties, flat, masked
    for (float& x : logits) {
      x = std::normal_distribution<float>(0.0f, 3.0f)(random_);
      if (kind == 1) x = std::round(x);
      if (kind == 2) x = 1.0f;
      if (kind == 3 && random_() % 2 == 0) x = -kInfinity;
    }
    logits[random_() % logits.size()] = 2.0f;
    SampleRow row;
    row.logits = logits;
    row.temperature = std::vector<float>{0.05f, 0.8f, 1.0f, 7.0f}[random_() % 4];
    row.top_p = std::vector<float>{1.0f, 0.5f, 0.9f, 0.25f, 1e-7f, 1e-40f}[random_() % 6];
    row.top_k = std::vector<std::int32_t>{0, -1, 1, 5, 299, 1000}[random_() % 6];
    row.min_p = std::vector<float>{0.0f, 0.1f, 1.0f, 1e-6f}[random_() % 4];
    row.seed = random_();
    row.position = static_cast<std::uint32_t>(random_() % 100);
    row.choice = static_cast<std::uint32_t>(random_() % 3);
    const SampleOutcome outcome = Sample(row);
    ASSERT_TRUE(outcome.finite);
    ASSERT_EQ(outcome.token, PlainSample(row));
  }
}

TEST_P(SamplingTest, GreedyTakesTheLargestAndTiesGoToTheLowerId) {
  const std::vector<float> logits = {1.0f, 5.0f, -kInfinity, 5.0f};
  SampleRow row;
  row.logits = logits;
  row.temperature = 0.0f;
  EXPECT_EQ(Sample(row).token, 1u);
}

TEST_P(SamplingTest, RowsWithoutATokenAreReported) {
  const float nan = std::nanf("");
  for (const std::vector<float>& logits :
       {std::vector<float>{1.0f, nan}, std::vector<float>{nan, 1.0f},
        std::vector<float>{kInfinity, 1.0f}, std::vector<float>{-kInfinity, -kInfinity}}) {
    for (const float temperature : {0.0f, 1.0f}) {
      SampleRow row;
      row.logits = logits;
      row.temperature = temperature;
      EXPECT_FALSE(Sample(row).finite);
      EXPECT_EQ(Sample(row).token, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, SamplingTest, testing::ValuesIn(AllSettings()), SettingName);

}  // namespace
}  // namespace pagoda::kernels::cpu
