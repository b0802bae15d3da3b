#include "kernels/reference/sample.h"

#include <limits>

#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SampleTest : public CudaTest {
 protected:
  void ExpectTheReferencesTokens(std::span<const SampleRow> rows, const std::string& what) {
    std::vector<SampleOutcome> found(rows.size());
    ops_->Sample({rows, found}, stream_);
    Finish();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const SampleOutcome wanted = reference::Sample(rows[i]);
      ASSERT_EQ(found[i].finite, wanted.finite) << what << ", row " << i;
      ASSERT_EQ(found[i].token, wanted.token) << what << ", row " << i;
    }
  }
};

// Rows with many equal logits, flat ones, ones with one token only, and ordinary ones.
std::vector<float> RandomLogits(std::mt19937& random, std::size_t count, int kind) {
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(count);
  for (float& x : logits) {
    x = normal(random);
    if (kind == 1) x = std::round(x);
    if (kind == 2) x = 0.5f;
    if (kind == 3) x = random() % 4 == 0 ? x : -kInfinity;
  }
  if (kind == 4) logits[random() % count] = 200.0f;
  return logits;
}

TEST_F(SampleTest, DrawsTheReferencesTokenFromRowsWithTiesAndThresholdsHitExactly) {
  constexpr unsigned kSeed = 71;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const float top_ps[] = {1.0f, 0.9f, 0.5f, 0.25f, 1e-3f, 1e-42f};
  const float min_ps[] = {0.0f, 0.1f, 1.0f, 0.0f};
  const std::int32_t top_ks[] = {0, 1, 2, 40, 1000};
  for (int round = 0; round < 12; ++round) {
    const std::size_t count = 1 + random() % 300;
    std::vector<std::vector<float>> logits;
    std::vector<SampleRow> rows;
    for (int i = 0; i < 25; ++i) logits.push_back(RandomLogits(random, count, i % 5));
    for (const std::vector<float>& each : logits) {
      rows.push_back(
          {.logits = each,
           .temperature = random() % 5 == 0 ? 0.0f : 0.25f * static_cast<float>(1 + random() % 8),
           .top_p = top_ps[random() % 6],
           .top_k = top_ks[random() % 5],
           .min_p = min_ps[random() % 4],
           .seed = random(),
           .position = static_cast<std::uint32_t>(random()),
           .choice = static_cast<std::uint32_t>(random() % 3)});
    }
    ExpectTheReferencesTokens(rows, "round " + std::to_string(round));
  }
}

// A flat row of 8 at p = 1/2: the fifth token has exactly half before it, and goes.
TEST_F(SampleTest, KeepsOfEqualTokensTheLowestIdsUpToTheThreshold) {
  const std::vector<float> flat(8, 1.0f);
  std::vector<SampleRow> rows;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    rows.push_back({.logits = flat, .top_p = 0.5f, .seed = seed});
    rows.push_back({.logits = flat, .top_k = 3, .seed = seed});
  }
  ExpectTheReferencesTokens(rows, "flat");
  std::vector<SampleOutcome> found(rows.size());
  ops_->Sample({rows, found}, stream_);
  std::vector<int> drawn(8);
  for (std::size_t i = 0; i < found.size(); i += 2) ++drawn[found[i].token];
  EXPECT_GT(drawn[3], 0);
  EXPECT_EQ(drawn[4] + drawn[5] + drawn[6] + drawn[7], 0);
}

TEST_F(SampleTest, RowsThatAreNotFiniteHaveNoToken) {
  const std::vector<float> bad[] = {{1.0f, kNan, 2.0f},
                                    {kInfinity, 1.0f},
                                    {-kInfinity, -kInfinity},
                                    {-0.0f, 0.0f},
                                    {-kInfinity, 3.0f}};
  std::vector<SampleRow> rows;
  for (const std::vector<float>& each : bad) {
    rows.push_back({.logits = each});
    rows.push_back({.logits = each, .temperature = 0.0f});
  }
  ExpectTheReferencesTokens(rows, "not finite");
}

TEST_F(SampleTest, StandsEverySchedule) {
  std::mt19937 random(72);
  const std::vector<float> logits = RandomLogits(random, 200, 1);
  const std::vector<SampleRow> rows = {{.logits = logits, .top_p = 0.8f, .top_k = 30, .seed = 3},
                                       {.logits = logits, .temperature = 0.0f}};
  for (const Schedule& schedule : HostileSchedules()) {
    device_->SetSchedule(schedule);
    ExpectTheReferencesTokens(rows, Describe(schedule));
  }
}

}  // namespace
}  // namespace pagoda::kernels::cuda
