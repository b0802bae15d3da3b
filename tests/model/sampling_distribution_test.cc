// Draws beside the exact distributions of tests/oracle/make_sampling_goldens.py, which knows
// nothing of our code: what may not be drawn never is, and what is drawn passes a chi-square test
// on both sides. The golden's bounds are passed wrongly once in 10^6 on each side.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "kernels/reference/reference_ops.h"
#include "model/sampler.h"

namespace pagoda::model {
namespace {

struct Case {
  std::string name;
  base::SamplingParams params;
  std::vector<float> logits;
  std::vector<base::TokenId> ends, allowed, bad_words, history;
  std::size_t num_prompt_tokens = 0;
  std::vector<base::LogitBias> bias;
  std::vector<double> probabilities, logprobs;
  std::vector<int> bins;
  double low = 0, high = 0;
};

template <typename T>
std::vector<T> ReadList(std::istream& in) {
  std::size_t count = 0;
  in >> count;
  std::vector<T> values(count);
  for (T& value : values) in >> value;
  return values;
}

// Reads one word and what belongs to it. Returns false at the end of the case.
bool ReadEntry(std::istream& in, Case& c) {
  std::string word;
  in >> word;
  if (word == "logits") c.logits = ReadList<float>(in);
  if (word == "temperature") in >> c.params.temperature;
  if (word == "top_p") in >> c.params.top_p;
  if (word == "top_k") in >> c.params.top_k;
  if (word == "min_p") in >> c.params.min_p;
  if (word == "presence") in >> c.params.presence_penalty;
  if (word == "frequency") in >> c.params.frequency_penalty;
  if (word == "repetition") in >> c.params.repetition_penalty;
  if (word == "min_tokens") in >> c.params.min_tokens;
  if (word == "ends") c.ends = ReadList<base::TokenId>(in);
  if (word == "allowed") c.allowed = ReadList<base::TokenId>(in);
  if (word == "bad_words") c.bad_words = ReadList<base::TokenId>(in);
  if (word == "prompt") {
    c.history = ReadList<base::TokenId>(in);
    c.num_prompt_tokens = c.history.size();
  }
  if (word == "generated") {
    const auto generated = ReadList<base::TokenId>(in);
    c.history.insert(c.history.end(), generated.begin(), generated.end());
  }
  if (word == "bias_tokens") {
    for (const base::TokenId token : ReadList<base::TokenId>(in)) c.bias.push_back({token, 0.0f});
  }
  if (word == "bias_values") {
    const auto values = ReadList<float>(in);
    for (std::size_t i = 0; i < values.size(); ++i) c.bias[i].bias = values[i];
  }
  if (word == "probabilities") c.probabilities = ReadList<double>(in);
  if (word == "bins") c.bins = ReadList<int>(in);
  if (word == "low") in >> c.low;
  if (word == "high") in >> c.high;
  if (word == "logprobs") c.logprobs = ReadList<double>(in);
  return word != "end" && in.good();
}

struct Goldens {
  int num_draws = 0;
  std::vector<Case> cases;
};

Goldens ReadGoldens() {
  std::ifstream in(PAGODA_SOURCE_DIR "/tests/oracle/goldens/sampling.txt");
  Goldens goldens;
  std::string word;
  in >> word >> goldens.num_draws;
  while (in >> word && word == "case") {
    Case& c = goldens.cases.emplace_back();
    in >> c.name;
    while (ReadEntry(in, c)) {
    }
  }
  return goldens;
}

std::vector<std::uint32_t> BitsOf(const std::vector<base::TokenId>& tokens, std::size_t size) {
  if (tokens.empty()) return {};
  std::vector<std::uint32_t> words((size + 31) / 32);
  for (const base::TokenId token : tokens) words[token / 32] |= std::uint32_t{1} << (token % 32);
  return words;
}

// How often each token is drawn. Every draw is the next of the case's history.
std::vector<int> Draw(const Case& c, std::uint64_t seed, int num_draws) {
  const auto ops = kernels::MakeReferenceOps();
  const auto vocabulary = static_cast<std::uint32_t>(c.logits.size());
  Sampler sampler(*ops, 1, vocabulary);
  SamplerOpening opening{.params = c.params,
                         .history = c.history,
                         .num_prompt_tokens = static_cast<std::int32_t>(c.num_prompt_tokens),
                         .logit_bias = c.bias,
                         .masked_below_min_tokens = c.ends,
                         .allowed_words = {},
                         .bad_words = c.bad_words};
  const std::vector<std::uint32_t> words = BitsOf(c.allowed, vocabulary);
  opening.allowed_words = words;
  opening.params.seed = seed;
  std::vector<int> counts(vocabulary);
  const bool remembers =
      c.params.has_penalties() || !c.bad_words.empty() || c.params.min_tokens > 0;
  for (int i = 0; i < num_draws; ++i) {
    if (i == 0 || remembers) sampler.Open(base::SlotId{0}, opening);
    std::vector<float> logits = c.logits;
    const SampledToken token =
        sampler.Sample(base::SlotId{0}, 0, static_cast<std::uint32_t>(i), logits);
    EXPECT_TRUE(token.finite && !token.nothing_allowed);
    ++counts[token.token];
  }
  return counts;
}

void ExpectDistribution(const Case& c, std::uint64_t seed, int num_draws) {
  const std::vector<int> counts = Draw(c, seed, num_draws);
  std::vector<double> expected, found;
  for (std::size_t token = 0; token < counts.size(); ++token) {
    if (c.bins[token] < 0) {
      EXPECT_EQ(counts[token], 0) << c.name << ": token " << token << " may not be drawn";
      continue;
    }
    const auto bin = static_cast<std::size_t>(c.bins[token]);
    expected.resize(std::max(expected.size(), bin + 1));
    found.resize(expected.size());
    expected[bin] += c.probabilities[token] * num_draws;
    found[bin] += counts[token];
  }
  double statistic = 0;
  for (std::size_t bin = 0; bin < expected.size(); ++bin) {
    statistic += (found[bin] - expected[bin]) * (found[bin] - expected[bin]) / expected[bin];
  }
  EXPECT_GT(statistic, c.low) << c.name << ", seed " << seed;
  EXPECT_LT(statistic, c.high) << c.name << ", seed " << seed;
}

TEST(SamplingDistribution, DrawsFollowTheExactDistribution) {
  const Goldens goldens = ReadGoldens();
  ASSERT_EQ(goldens.cases.size(), 16u);
  ASSERT_EQ(goldens.num_draws, 100'000);
  for (const std::uint64_t seed :
       {std::uint64_t{1}, std::uint64_t{2'000'000'011}, ~std::uint64_t{0}}) {
    std::cerr << "seed " << seed << "\n";
    for (const Case& c : goldens.cases) ExpectDistribution(c, seed, goldens.num_draws);
  }
}

TEST(SamplingDistribution, LogProbabilitiesAreThoseOfTheLogitsAlone) {
  const auto ops = kernels::MakeReferenceOps();
  for (const Case& c : ReadGoldens().cases) {
    const auto vocabulary = static_cast<std::uint32_t>(c.logits.size());
    Sampler sampler(*ops, 1, vocabulary);
    const std::vector<std::uint32_t> words = BitsOf(c.allowed, vocabulary);
    SamplerOpening opening{.params = c.params,
                           .history = c.history,
                           .num_prompt_tokens = static_cast<std::int32_t>(c.num_prompt_tokens),
                           .logit_bias = c.bias,
                           .masked_below_min_tokens = c.ends,
                           .allowed_words = words,
                           .bad_words = c.bad_words};
    opening.params.logprobs = 20;
    sampler.Open(base::SlotId{0}, opening);
    std::vector<float> logits = c.logits;
    const SampleTask task{.slot = base::SlotId{0}, .choice = 0, .position = 1, .logits = logits};
    SampledToken token;
    Alternatives alternatives;
    sampler.SampleBatch(std::span(&task, 1), std::span(&token, 1), alternatives);
    EXPECT_NEAR(token.score.of.logprob, c.logprobs[token.token], 2e-6) << c.name;
    ASSERT_EQ(alternatives.size(), 20u);
    for (const base::TokenLogprob& each : alternatives) {
      EXPECT_NEAR(each.logprob, c.logprobs[each.token], 2e-6) << c.name;
    }
  }
}

}  // namespace
}  // namespace pagoda::model
