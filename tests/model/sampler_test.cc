#include "model/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "kernels/ops.h"
#include "kernels/reference/reference_ops.h"

namespace pagoda::model {
namespace {

constexpr std::uint32_t kVocabulary = 8;
constexpr base::SlotId kSlot{1};

// A sampler over the reference ops, and rows that a test writes by hand.
class SamplerTest : public testing::Test {
 protected:
  void Open(const SamplerOpening& opening) { sampler_.Open(kSlot, opening); }
  SampledToken Draw(std::vector<float> logits, std::uint32_t position = 3) {
    logits.resize(kVocabulary + 2, 1000.0f);  // padding rows past the vocabulary must not win
    return sampler_.Sample(kSlot, 0, position, logits);
  }

  std::unique_ptr<kernels::Ops> ops_ = kernels::MakeReferenceOps();
  Sampler sampler_{*ops_, 4, kVocabulary};
};

base::SamplingParams Greedy() {
  base::SamplingParams params;
  params.temperature = 0.0f;
  return params;
}

TEST_F(SamplerTest, GreedyTakesTheLargestLogitAndTheLowerIdOnATie) {
  Open({.params = Greedy()});
  EXPECT_EQ(Draw({0, 1, 5, 5, 2, 0, 0, 0}).token, 2u);
}

// C1: temperatures down to the smallest positive float give the greedy token, never a NaN.
TEST_F(SamplerTest, TinyTemperaturesGiveTheGreedyToken) {
  for (const float temperature :
       {1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-30f, std::numeric_limits<float>::denorm_min()}) {
    base::SamplingParams params;
    params.temperature = temperature;
    Open({.params = params});
    const SampledToken drawn = Draw({-30, 12, 29, 30, 0, -5, 7, 1});
    EXPECT_TRUE(drawn.finite) << temperature;
    EXPECT_EQ(drawn.token, 3u) << temperature;
  }
}

// Presence and frequency look at generated tokens only, repetition at the prompt too.
TEST_F(SamplerTest, C8_PenaltiesHaveTheirOwnScopes) {
  const std::vector<base::TokenId> prompt = {2, 2, 2};
  const std::vector<float> logits = {0, 9, 10, 0, 0, 0, 0, 0};
  base::SamplingParams params = Greedy();
  params.presence_penalty = 2.0f;
  params.frequency_penalty = 2.0f;
  Open({.params = params, .history = prompt, .num_prompt_tokens = 3});
  EXPECT_EQ(Draw(logits).token, 2u);  // the prompt does not count; this draw does
  EXPECT_EQ(Draw(logits).token, 1u);

  params = Greedy();
  params.repetition_penalty = 1.3f;
  Open({.params = params, .history = prompt, .num_prompt_tokens = 3});
  EXPECT_EQ(Draw(logits).token, 1u);
}

TEST_F(SamplerTest, RepetitionLowersNegativeLogitsToo) {
  base::SamplingParams params = Greedy();
  params.repetition_penalty = 2.0f;
  const std::vector<base::TokenId> prompt = {0};
  Open({.params = params, .history = prompt, .num_prompt_tokens = 1});
  EXPECT_EQ(Draw({-1, -1.5f, -9, -9, -9, -9, -9, -9}).token, 1u);
}

// C8: a slot reopened with the history (after preemption) continues as if nothing had happened.
TEST_F(SamplerTest, ReopeningWithTheHistoryContinuesTheSameTokens) {
  base::SamplingParams params;
  params.seed = 42;
  params.frequency_penalty = 1.5f;
  params.presence_penalty = 0.5f;
  params.repetition_penalty = 1.2f;
  const std::vector<float> logits = {1, 1.5f, 2, 0.5f, 0, 1, 2, 1};
  std::vector<base::TokenId> history = {4, 6};
  Open({.params = params, .history = history, .num_prompt_tokens = 2});
  std::vector<base::TokenId> straight;
  for (std::uint32_t i = 0; i < 16; ++i) straight.push_back(Draw(logits, 2 + i).token);

  for (std::uint32_t i = 0; i < 16; ++i) {
    Open({.params = params, .history = history, .num_prompt_tokens = 2});
    const base::TokenId token = Draw(logits, 2 + i).token;
    ASSERT_EQ(token, straight[i]) << "token " << i;
    history.push_back(token);
  }
  EXPECT_GT(std::set<base::TokenId>(straight.begin(), straight.end()).size(), 1u);
}

// B3, sampler's half: below min_tokens the ends cannot be drawn; from there on they can.
TEST_F(SamplerTest, EndsAreMaskedBelowMinTokens) {
  base::SamplingParams params = Greedy();
  params.min_tokens = 2;
  const std::vector<base::TokenId> ends = {5};
  Open({.params = params, .masked_below_min_tokens = ends});
  const std::vector<float> logits = {0, 1, 0, 0, 0, 9, 0, 0};
  EXPECT_EQ(Draw(logits).token, 1u);
  EXPECT_EQ(Draw(logits).token, 1u);
  EXPECT_EQ(Draw(logits).token, 5u);
}

TEST_F(SamplerTest, BiasComesBeforeThePenalties) {
  base::SamplingParams params = Greedy();
  params.repetition_penalty = 2.0f;
  const std::vector<base::TokenId> prompt = {0};
  const std::vector<base::LogitBias> bias = {{.token = 0, .bias = 10.0f}};
  Open({.params = params, .history = prompt, .num_prompt_tokens = 1, .logit_bias = bias});
  // (0 + 10) / 2 = 5 loses against 6; bias after the penalty would give 10.
  EXPECT_EQ(Draw({0, 6, 0, 0, 0, 0, 0, 0}).token, 1u);
}

// C3, C5: the seed alone decides, 0 is a seed like any other.
TEST_F(SamplerTest, TheSameSeedGivesTheSameTokensAndAnotherSeedOthers) {
  const std::vector<float> flat(kVocabulary, 1.0f);
  std::vector<std::vector<base::TokenId>> runs;
  for (const std::uint64_t seed : {0, 0, 1}) {
    base::SamplingParams params;
    params.seed = seed;
    Open({.params = params});
    runs.emplace_back();
    for (std::uint32_t i = 0; i < 32; ++i) runs.back().push_back(Draw(flat, i).token);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

// C6: whatever the filters, one token survives.
TEST_F(SamplerTest, ExtremeFiltersKeepTheBestToken) {
  base::SamplingParams params;
  params.top_p = 1e-9f;
  params.top_k = 9'999'999;
  params.min_p = 1.0f;
  Open({.params = params});
  EXPECT_EQ(Draw({0, 1, 2, 7, 4, 5, 6, 3}).token, 3u);
}

TEST_F(SamplerTest, ARowThatIsNotFiniteGivesNoToken) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  Open({.params = Greedy()});
  EXPECT_FALSE(Draw({0, nan, 0, 0, 0, 0, 0, 0}).finite);
  EXPECT_FALSE(Draw({0, infinity, 0, 0, 0, 0, 0, 0}).finite);
  EXPECT_TRUE(Draw({0, -infinity, 0, 0, 0, 0, 0, 0}).finite);
}

TEST_F(SamplerTest, AMaskDoesNotHideABrokenRow) {
  base::SamplingParams params = Greedy();
  params.min_tokens = 1;
  const std::vector<base::TokenId> ends = {5};
  Open({.params = params, .masked_below_min_tokens = ends});
  EXPECT_FALSE(Draw({0, 1, 0, 0, 0, std::nanf(""), 0, 0}).finite);
}

TEST_F(SamplerTest, BatchMatesDoNotTouchEachOther) {
  base::SamplingParams params;
  params.seed = 7;
  sampler_.Open(base::SlotId{0}, {.params = params});
  params.seed = 8;
  params.temperature = 3.0f;
  sampler_.Open(base::SlotId{2}, {.params = params});
  std::vector<float> first = {0, 1, 2, 3, 2, 1, 0, 1};
  std::vector<float> second = {3, 2, 1, 0, 1, 2, 3, 2};
  const base::TokenId alone = sampler_.Sample(base::SlotId{0}, 0, 5, first).token;
  const std::vector<SampleTask> tasks = {
      {.slot = base::SlotId{2}, .choice = 0, .position = 9, .logits = second},
      {.slot = base::SlotId{0}, .choice = 0, .position = 5, .logits = first}};
  std::vector<SampledToken> tokens(2);
  Alternatives alternatives;
  sampler_.SampleBatch(tasks, tokens, alternatives);
  EXPECT_EQ(tokens[1].token, alone);
}

TEST_F(SamplerTest, MasksThatLeaveNothingAreToldFromABrokenRow) {
  const std::vector<std::uint32_t> only = {0b100};
  const std::vector<base::TokenId> words = {1, 2};
  Open({.params = Greedy(), .allowed_words = only, .bad_words = words});
  SampledToken drawn = Draw({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_TRUE(drawn.finite);
  EXPECT_TRUE(drawn.nothing_allowed);
  drawn = Draw({0, std::nanf(""), 2, 3, 4, 5, 6, 7});
  EXPECT_FALSE(drawn.finite);
  EXPECT_FALSE(drawn.nothing_allowed);
  Open({.params = Greedy()});
  const float ruled_out = -std::numeric_limits<float>::infinity();
  EXPECT_FALSE(Draw(std::vector<float>(kVocabulary, ruled_out)).finite);
}

// Log-probabilities are of the row as the model gave it, also where masks, bias and penalties have
// changed it (C10: a banned token has its own, not minus infinity).
TEST_F(SamplerTest, LogprobsAreOfTheModelsOwnLogits) {
  const std::vector<float> plain = {0, 1, 2, 3, 4, 5, 6, 7};
  base::SamplingParams params = Greedy();
  params.logprobs = 3;
  params.repetition_penalty = 2.0f;
  const std::vector<base::TokenId> prompt = {5};
  const std::vector<base::TokenId> words = {1, 7};
  const std::vector<base::LogitBias> bias = {{.token = 1, .bias = 9.0f}};
  sampler_.Open(kSlot, {.params = params,
                        .history = prompt,
                        .num_prompt_tokens = 1,
                        .logit_bias = bias,
                        .bad_words = words});
  std::vector<float> logits = plain;
  const SampleTask task{.slot = kSlot, .choice = 0, .position = 1, .logits = logits};
  SampledToken token;
  Alternatives alternatives = {{.token = 99, .logprob = 1.0f}};  // of another row
  sampler_.SampleBatch(std::span(&task, 1), std::span(&token, 1), alternatives);
  EXPECT_EQ(token.token, 1u);
  EXPECT_EQ(token.score.of.token, 1u);
  EXPECT_EQ(token.score.rank, 7u);
  EXPECT_EQ(token.score.first_alternative, 1u);
  ASSERT_EQ(alternatives.size(), 4u);
  double total = 0;
  for (const float x : plain) total += std::exp(x);
  EXPECT_NEAR(token.score.of.logprob, 1 - std::log(total), 1e-6);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(alternatives[1 + i].token, 7 - i);
    EXPECT_NEAR(alternatives[1 + i].logprob, 7 - i - std::log(total), 1e-6);
  }
}

TEST_F(SamplerTest, NoLogprobsDiffersFromZeroOfThem) {
  std::vector<float> logits = {0, 1, 2, 3, 4, 5, 6, 7};
  base::SamplingParams params = Greedy();
  sampler_.Open(kSlot, {.params = params});
  EXPECT_EQ(sampler_.Sample(kSlot, 0, 0, logits).score.rank, 0u);
  params.logprobs = 0;
  sampler_.Open(kSlot, {.params = params});
  const SampledToken token = sampler_.Sample(kSlot, 0, 0, logits);
  EXPECT_EQ(token.score.rank, 1u);
  EXPECT_EQ(token.score.num_alternatives, 0u);
}

TEST_F(SamplerTest, MoreLogprobsThanTokensGivesAllTokens) {
  std::vector<float> logits = {0, 1, 2, 3, 4, 5, 6, 7};
  base::SamplingParams params = Greedy();
  params.logprobs = 20;
  sampler_.Open(kSlot, {.params = params});
  EXPECT_EQ(sampler_.Sample(kSlot, 0, 0, logits).score.num_alternatives, kVocabulary);
}

TEST_F(SamplerTest, NamedTokensAreScoredInTheirOrder) {
  base::SamplingParams params = Greedy();
  params.logprobs = 2;
  const std::vector<base::TokenId> ids = {6, 0};
  sampler_.Open(kSlot, {.params = params, .logprob_token_ids = ids});
  std::vector<float> logits = {0, 1, 2, 3, 4, 5, 6, 7};
  const SampleTask task{.slot = kSlot, .choice = 0, .position = 1, .logits = logits};
  SampledToken token;
  Alternatives alternatives;
  sampler_.SampleBatch(std::span(&task, 1), std::span(&token, 1), alternatives);
  ASSERT_EQ(alternatives.size(), 2u);
  EXPECT_EQ(alternatives[0].token, 6u);
  EXPECT_EQ(alternatives[1].token, 0u);
}

TEST_F(SamplerTest, TokensOfThePromptAreScoredAsTheyStand) {
  base::SamplingParams params = Greedy();
  params.prompt_logprobs = 1;
  const std::vector<base::TokenId> words = {1, 7};
  sampler_.Open(kSlot, {.params = params, .bad_words = words});
  const std::vector<float> first = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<float> broken = {0, 1, std::nanf(""), 3, 4, 5, 6, 7};
  const std::vector<ScoreTask> tasks = {{.slot = kSlot, .token = 2, .logits = first},
                                        {.slot = kSlot, .token = 2, .logits = broken}};
  std::vector<SampledToken> tokens(2);
  Alternatives alternatives;
  sampler_.ScoreBatch(tasks, tokens, alternatives);
  EXPECT_EQ(tokens[0].score.rank, 6u);
  EXPECT_EQ(alternatives[0].token, 7u);
  EXPECT_TRUE(tokens[0].finite);
  EXPECT_FALSE(tokens[1].finite);
}

// Several choices of one request draw from the row of the prompt's last token.
TEST_F(SamplerTest, DrawsMayShareARowAndLeaveItAsItIs) {
  const std::vector<base::LogitBias> bias = {{.token = 2, .bias = 4.0f}};
  const std::vector<base::TokenId> words = {1, 0};
  for (const std::uint32_t slot : {0u, 1u}) {
    sampler_.Open(base::SlotId{slot}, {.params = Greedy(), .logit_bias = bias, .bad_words = words});
  }
  const std::vector<float> logits = {9, 1, 2, 7, 1, 1, 1, 1};  // 2 + 4 loses, 2 + 4 + 4 would win
  const std::vector<SampleTask> tasks = {
      {.slot = base::SlotId{0}, .choice = 0, .position = 9, .logits = logits},
      {.slot = base::SlotId{1}, .choice = 1, .position = 9, .logits = logits}};
  std::vector<SampledToken> tokens(2);
  Alternatives alternatives;
  sampler_.SampleBatch(tasks, tokens, alternatives);
  EXPECT_EQ(tokens[0].token, 3u);
  EXPECT_EQ(tokens[1].token, 3u);
  EXPECT_EQ(logits, (std::vector<float>{9, 1, 2, 7, 1, 1, 1, 1}));
}

TEST_F(SamplerTest, DrawingFromAClosedSlotAborts) {
  std::vector<float> logits(kVocabulary, 0.0f);
  EXPECT_DEATH(sampler_.Sample(base::SlotId{3}, 0, 0, logits), "is_open");
}

}  // namespace
}  // namespace pagoda::model
