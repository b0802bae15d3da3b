#include "model/logit_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pagoda::model {
namespace {

using testing::ElementsAre;
using Tokens = std::vector<base::TokenId>;

constexpr std::uint32_t kVocabulary = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The tokens that rules have masked in a row of zeros.
Tokens Masked(const LogitRules& rules) {
  std::vector<float> logits(kVocabulary, 0.0f);
  rules.Apply(logits);
  Tokens masked;
  for (base::TokenId token = 0; token < kVocabulary; ++token) {
    if (logits[token] == -kInfinity) masked.push_back(token);
  }
  return masked;
}

class LogitRulesTest : public testing::Test {
 protected:
  LogitRules rules_{kVocabulary, 8};
};

TEST_F(LogitRulesTest, OnlyAllowedTokensAreLeft) {
  const std::vector<std::uint32_t> words = {0b0010'0110};
  rules_.Open({.allowed_words = words});
  EXPECT_THAT(Masked(rules_), ElementsAre(0, 3, 4, 6, 7));
}

TEST_F(LogitRulesTest, ABadWordOfOneTokenIsAlwaysMasked) {
  const Tokens words = {1, 3, 1, 6};
  rules_.Open({.bad_words = words});
  EXPECT_THAT(Masked(rules_), ElementsAre(3, 6));
}

TEST_F(LogitRulesTest, OfALongerWordTheLastTokenIsMaskedOnceTheOthersWereGenerated) {
  const Tokens words = {3, 1, 2, 5, 2, 2, 7};
  rules_.Open({.bad_words = words});
  EXPECT_THAT(Masked(rules_), ElementsAre());
  rules_.Count(1);
  EXPECT_THAT(Masked(rules_), ElementsAre());
  rules_.Count(2);
  EXPECT_THAT(Masked(rules_), ElementsAre(5, 7));
  rules_.Count(4);
  EXPECT_THAT(Masked(rules_), ElementsAre());
  rules_.Count(2);
  EXPECT_THAT(Masked(rules_), ElementsAre(7));
}

TEST_F(LogitRulesTest, AWordDoesNotReachIntoThePrompt) {
  const Tokens words = {2, 1, 2};
  const Tokens history = {4, 1};
  rules_.Open({.history = history, .num_prompt_tokens = 2, .bad_words = words});
  EXPECT_THAT(Masked(rules_), ElementsAre());
  rules_.Open({.history = history, .num_prompt_tokens = 1, .bad_words = words});
  EXPECT_THAT(Masked(rules_), ElementsAre(2));
}

// A slot reopened after a preemption masks what it would have masked.
TEST_F(LogitRulesTest, C8_ReopeningWithTheHistoryMasksTheSame) {
  const Tokens words = {3, 1, 1, 1, 2, 3, 0, 4, 0, 1, 0, 6};
  Tokens history = {7};
  rules_.Open({.history = history, .num_prompt_tokens = 1, .bad_words = words});
  for (const base::TokenId token : {1u, 1u, 1u, 3u, 0u, 1u, 0u, 5u, 1u, 1u}) {
    rules_.Count(token);
    history.push_back(token);
    LogitRules again(kVocabulary, 8);
    again.Open({.history = history, .num_prompt_tokens = 1, .bad_words = words});
    EXPECT_EQ(Masked(rules_), Masked(again));
  }
}

TEST_F(LogitRulesTest, AMaskSaysWhatItHides) {
  const std::vector<std::uint32_t> words = {0b1111'1110};
  rules_.Open({.allowed_words = words});
  std::vector<float> logits(kVocabulary, 0.0f);
  EXPECT_TRUE(rules_.Apply(logits).hides_token);
  logits.assign(kVocabulary, 0.0f);
  logits[0] = -kInfinity;
  EXPECT_FALSE(rules_.Apply(logits).hides_token);
  for (const float bad : {kNan, kInfinity}) {
    logits.assign(kVocabulary, 0.0f);
    logits[0] = bad;
    EXPECT_TRUE(rules_.Apply(logits).hides_fault);
  }
  EXPECT_FALSE(rules_.Apply(logits).hides_fault);
}

TEST_F(LogitRulesTest, ABiasDoesNotBringAMaskedTokenBack) {
  const Tokens words = {1, 3};
  const std::vector<base::LogitBias> bias = {{.token = 3, .bias = 100.0f}};
  rules_.Open({.logit_bias = bias, .bad_words = words});
  EXPECT_THAT(Masked(rules_), ElementsAre(3));
}

TEST_F(LogitRulesTest, AnExtremePenaltyLeavesLogitsFinite) {
  const Tokens prompt = {0, 1};
  for (const float factor : {std::numeric_limits<float>::denorm_min(), 3e38f}) {
    base::SamplingParams params;
    params.repetition_penalty = factor;
    rules_.Open({.params = params, .history = prompt, .num_prompt_tokens = 2});
    std::vector<float> logits(kVocabulary, 0.0f);
    logits[0] = 20.0f;
    logits[1] = -20.0f;
    rules_.Apply(logits);
    EXPECT_TRUE(std::isfinite(logits[0])) << factor;
    EXPECT_TRUE(std::isfinite(logits[1])) << factor;
  }
}

TEST_F(LogitRulesTest, KnowsWhenARowStaysAsItIs) {
  rules_.Open({});
  EXPECT_FALSE(rules_.changes_logits());
  const Tokens ends = {5};
  base::SamplingParams params;
  params.min_tokens = 1;
  rules_.Open({.params = params, .masked_below_min_tokens = ends});
  EXPECT_TRUE(rules_.changes_logits());
  rules_.Count(2);
  EXPECT_FALSE(rules_.changes_logits());
}

}  // namespace
}  // namespace pagoda::model
