#include <algorithm>
#include <cmath>

#include "base/token_score.h"
#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kLargeVocabulary = 49'152;

struct Scored {
  ScoreOutcome outcome;
  std::vector<base::TokenLogprob> alternatives;
};

class ScoreTest : public KernelSuite {
 protected:
  Scored Score(Ops& ops, const std::vector<float>& logits, base::TokenId token,
               std::size_t num_alternatives, const std::vector<base::TokenId>& ids = {}) const {
    Scored scored;
    scored.alternatives.resize(num_alternatives);
    const ScoreRow row{
        .logits = logits, .token = token, .token_ids = ids, .alternatives = scored.alternatives};
    ops.Score({.rows = std::span(&row, 1), .outcomes = std::span(&scored.outcome, 1)}, stream_);
    EXPECT_TRUE(ops.device().Await(ops.device().Record(stream_)).ok());
    return scored;
  }

  void ExpectReferenceBits(const std::vector<float>& logits, base::TokenId token) {
    const Scored found = Score(*ops_, logits, token, std::min<std::size_t>(20, logits.size()));
    const Scored wanted = Score(*reference_, logits, token, found.alternatives.size());
    ASSERT_EQ(found.outcome.finite, wanted.outcome.finite);
    if (!wanted.outcome.finite) return;
    EXPECT_EQ(BitsOf(found.outcome.logprob), BitsOf(wanted.outcome.logprob));
    EXPECT_EQ(found.outcome.rank, wanted.outcome.rank);
    for (std::size_t i = 0; i < found.alternatives.size(); ++i) {
      EXPECT_EQ(found.alternatives[i].token, wanted.alternatives[i].token) << i;
      EXPECT_EQ(BitsOf(found.alternatives[i].logprob), BitsOf(wanted.alternatives[i].logprob));
    }
  }
};

std::vector<float> RandomLogits(std::size_t size, std::mt19937& random, float scale = 4.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> logits(size);
  for (float& x : logits) x = normal(random);
  return logits;
}

double ExactLogprob(const std::vector<float>& logits, base::TokenId token) {
  const double top = *std::ranges::max_element(logits);
  long double total = 0;
  for (const float x : logits) total += std::exp(static_cast<long double>(x - top));
  return static_cast<double>(logits[token] - top - std::log(total));
}

TEST_P(ScoreTest, LogProbabilitiesAreThoseOfDoubleArithmetic) {
  std::mt19937 random(31);
  double largest = 0;
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{8}, std::size_t{576}, kLargeVocabulary}) {
    for (const float scale : {0.01f, 1.0f, 8.0f}) {
      const std::vector<float> logits = RandomLogits(size, random, scale);
      const base::TokenId token = static_cast<base::TokenId>(random() % size);
      const Scored scored = Score(*ops_, logits, token, std::min<std::size_t>(5, size));
      const auto error = [&](base::TokenId id, float found) {
        return std::abs(found - ExactLogprob(logits, id)) /
               std::max(1.0, std::abs(ExactLogprob(logits, id)));
      };
      largest = std::max(largest, error(token, scored.outcome.logprob));
      for (const auto& each : scored.alternatives) {
        largest = std::max(largest, error(each.token, each.logprob));
      }
    }
  }
  EXPECT_LT(largest, 6e-7);
  EXPECT_GT(largest, 1e-9);
}

TEST_P(ScoreTest, TheLikeliestComeInOrderAndTheLowerIdFirstAmongEquals) {
  const std::vector<float> logits = {1, 3, 2, 3, -1, 2};
  const Scored scored = Score(*ops_, logits, 5, 6);
  std::vector<base::TokenId> order;
  for (const auto& each : scored.alternatives) order.push_back(each.token);
  EXPECT_EQ(order, (std::vector<base::TokenId>{1, 3, 2, 5, 0, 4}));
  EXPECT_EQ(scored.outcome.rank, 4u);
  for (base::TokenId place = 0; place < 6; ++place) {
    EXPECT_EQ(Score(*ops_, logits, order[place], 0).outcome.rank, place + 1);
  }
}

TEST_P(ScoreTest, NamedTokensComeInTheOrderOfTheirNames) {
  const std::vector<float> logits = {1, 3, 2, 3};
  const Scored scored = Score(*ops_, logits, 0, 3, {2, 0, 2});
  EXPECT_EQ(scored.alternatives[0].token, 2u);
  EXPECT_EQ(scored.alternatives[1].token, 0u);
  EXPECT_EQ(scored.alternatives[1].logprob, scored.outcome.logprob);
  EXPECT_EQ(scored.alternatives[2].logprob, scored.alternatives[0].logprob);
}

TEST_P(ScoreTest, TheBitsAreTheReferences) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = 1 + random() % 700;
    std::vector<float> logits = RandomLogits(size, random, round % 3 == 0 ? 0.0f : 5.0f);
    if (round % 4 == 1) {
      for (float& x : logits) x = std::round(x);  // ties
    }
    if (round % 5 == 2) logits[random() % size] = -kInfinity;
    if (round % 5 == 3) logits[random() % size] = 200.0f;  // nearly one-hot
    ExpectReferenceBits(logits, static_cast<base::TokenId>(random() % size));
  }
  ExpectReferenceBits(RandomLogits(kLargeVocabulary, random), 49'151);
}

// C10: what the model rules out has minus infinity, and no NaN comes of it.
TEST_P(ScoreTest, C10_ARuledOutTokenHasMinusInfinity) {
  const std::vector<float> logits = {0, -kInfinity, 1, -kInfinity};
  const Scored scored = Score(*ops_, logits, 3, 4);
  EXPECT_TRUE(scored.outcome.finite);
  EXPECT_EQ(scored.outcome.logprob, -kInfinity);
  EXPECT_EQ(scored.outcome.rank, 4u);
  EXPECT_EQ(scored.alternatives[0].token, 2u);
  EXPECT_NEAR(scored.alternatives[0].logprob, -0.3132617, 1e-6);
  EXPECT_EQ(scored.alternatives[2].logprob, -kInfinity);
}

TEST_P(ScoreTest, ARowThatIsNotFiniteSaysSo) {
  EXPECT_FALSE(Score(*ops_, {0, kNan, 1}, 0, 2).outcome.finite);
  EXPECT_FALSE(Score(*ops_, {0, kInfinity, 1}, 0, 2).outcome.finite);
  EXPECT_FALSE(Score(*ops_, {-kInfinity, -kInfinity}, 0, 2).outcome.finite);
}

TEST_P(ScoreTest, TheLogitsStayAsTheyAreAndRowsDoNotTouchEachOther) {
  std::mt19937 random(3);
  const std::vector<std::vector<float>> logits = {RandomLogits(100, random),
                                                  RandomLogits(100, random)};
  // The kernel may write through what it was given.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const auto before = logits;
  std::vector<base::TokenLogprob> first(4), second(7);
  const std::vector<ScoreRow> rows = {
      {.logits = logits[0], .token = 5, .token_ids = {}, .alternatives = first},
      {.logits = logits[1], .token = 6, .token_ids = {}, .alternatives = second}};
  std::vector<ScoreOutcome> outcomes(2);
  ops_->Score({.rows = rows, .outcomes = outcomes}, stream_);
  Finish();
  EXPECT_EQ(logits, before);
  const Scored alone = Score(*ops_, logits[1], 6, 7);
  EXPECT_EQ(BitsOf(outcomes[1].logprob), BitsOf(alone.outcome.logprob));
  EXPECT_EQ(second.back().token, alone.alternatives.back().token);
}

INSTANTIATE_TEST_SUITE_P(Backends, ScoreTest, testing::ValuesIn(Backends()), PrintName);

}  // namespace
}  // namespace pagoda::kernels
