#include "engine/stop_evaluator.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/naive_stops.h"

namespace pagoda::engine {
namespace {

using base::TokenId;
using fakes::NaiveStops;
using scheduler::FinishReason;
using scheduler::StopProgress;

// What a client would see: tokens, text as shown after each sample, and the end.
struct Reply {
  std::vector<TokenId> tokens;
  std::vector<std::string> shown;
  std::string text;
  std::optional<FinishReason> reason;
  std::int32_t matched_stop = -1;
  std::int64_t matched_stop_token = -1;
};

struct Case {
  std::vector<std::string> pieces;  // token i stands for pieces[i]
  std::vector<std::string> stops = {};
  std::vector<TokenId> stop_token_ids = {};
  std::int32_t min_tokens = 0;
  std::int32_t max_tokens = 100;
  bool ignore_eos = false;
  bool include_stop_string = false;
  std::vector<TokenId> eos = {};
};

Reply Answer(const Case& c, const std::vector<std::vector<TokenId>>& samples) {
  const NaiveStops stops(c.stops, c.pieces);
  const StopTerms terms{.strings = c.stops.empty() ? nullptr : &stops,
                        .stop_token_ids = c.stop_token_ids,
                        .min_tokens = c.min_tokens,
                        .max_tokens = c.max_tokens,
                        .ignore_eos = c.ignore_eos,
                        .include_stop_string = c.include_stop_string};
  const StopEvaluator evaluator(c.eos);
  StopProgress progress;
  Reply reply;
  std::string raw;
  for (const std::vector<TokenId>& sample : samples) {
    const auto verdict =
        evaluator.Evaluate(terms, static_cast<std::int32_t>(reply.tokens.size()), sample, progress);
    for (std::uint32_t i = 0; i < verdict.outcome.num_accepted; ++i) {
      reply.tokens.push_back(sample[i]);
      if (std::cmp_not_equal(sample[i], verdict.matched_stop_token)) raw += c.pieces[sample[i]];
    }
    reply.shown.push_back(raw.substr(0, verdict.showable_bytes));
    if (verdict.outcome.finish) {
      reply.reason = verdict.outcome.finish;
      reply.text = raw.substr(0, verdict.text_bytes);
      reply.matched_stop = verdict.matched_stop;
      reply.matched_stop_token = verdict.matched_stop_token;
      break;
    }
  }
  return reply;
}

// The samples of a step that gives one token at a time.
std::vector<std::vector<TokenId>> OneByOne(std::size_t count) {
  std::vector<std::vector<TokenId>> samples;
  for (TokenId t = 0; t < count; ++t) samples.push_back({t});
  return samples;
}

TEST(StopEvaluator, B1NothingOfAStopStringOverSeveralTokensIsEverShown) {
  const Reply reply = Answer({.pieces = {"KL", "M", "NO", "P"}, .stops = {"KLMNOP"}}, OneByOne(4));
  EXPECT_EQ(reply.shown, (std::vector<std::string>{"", "", "", ""}));
  EXPECT_EQ(reply.text, "");
  EXPECT_EQ(reply.reason, FinishReason::kStop);
  EXPECT_EQ(reply.matched_stop, 0);
}

TEST(StopEvaluator, B1HeldTextArrivesInFullOnceItCannotMatch) {
  const Reply reply = Answer({.pieces = {"KL", "M", "NO", "Q"}, .stops = {"KLMNOP"}}, OneByOne(4));
  EXPECT_EQ(reply.shown, (std::vector<std::string>{"", "", "", "KLMNOQ"}));
  EXPECT_EQ(reply.reason, std::nullopt);
}

TEST(StopEvaluator, B1AStopStringMayBeginInsideAnEarlierToken) {
  const Reply reply = Answer({.pieces = {"K", "KK", "L"}, .stops = {"KKL"}}, OneByOne(3));
  EXPECT_EQ(reply.text, "K");
  EXPECT_EQ(reply.shown.back(), "K");
  EXPECT_EQ(reply.reason, FinishReason::kStop);
}

TEST(StopEvaluator, B3AStopStringBelowMinTokensIsIgnored) {
  const Reply reply = Answer(
      {.pieces = {"a", "x\n", "b", "y\n", "c", "z\n", "d"}, .stops = {"\n"}, .min_tokens = 5},
      OneByOne(7));
  EXPECT_EQ(reply.tokens.size(), 6u);
  EXPECT_EQ(reply.text, "ax\nby\ncz");
  EXPECT_EQ(reply.reason, FinishReason::kStop);
}

TEST(StopEvaluator, B3AStopStringBegunBelowMinTokensCountsWhenItEndsAtIt) {
  const Reply reply =
      Answer({.pieces = {"a", "K", "L", "b"}, .stops = {"KL"}, .min_tokens = 3}, OneByOne(4));
  EXPECT_EQ(reply.tokens.size(), 3u);
  EXPECT_EQ(reply.text, "a");
}

TEST(StopEvaluator, B3AStopTokenOneTokenBelowMinTokensIsIgnored) {
  const Case c{.pieces = {"a", "b", "c"}, .stop_token_ids = {1}, .min_tokens = 3};
  EXPECT_EQ(Answer(c, {{0}, {1}, {0}, {0}, {1}}).tokens, (std::vector<TokenId>{0, 1, 0, 0, 1}));
  EXPECT_EQ(Answer(c, {{0}, {1}, {1}}).tokens, (std::vector<TokenId>{0, 1, 1}));
  EXPECT_EQ(Answer(c, {{0}, {1}, {1}}).reason, FinishReason::kStop);
}

TEST(StopEvaluator, B5EveryEosStopsUnlessIgnoredAndAStopTokenAlwaysDoes) {
  const std::vector<std::string> pieces(10, "x");
  const std::vector<TokenId> eos = {3, 7};
  EXPECT_EQ(Answer({.pieces = pieces, .eos = eos}, {{1}, {3}}).matched_stop_token, 3);
  EXPECT_EQ(Answer({.pieces = pieces, .eos = eos}, {{1}, {7}}).matched_stop_token, 7);
  const Case ignoring{.pieces = pieces, .stop_token_ids = {9}, .ignore_eos = true, .eos = eos};
  const Reply reply = Answer(ignoring, {{3}, {7}, {9}, {1}});
  EXPECT_EQ(reply.tokens, (std::vector<TokenId>{3, 7, 9}));
  EXPECT_EQ(reply.matched_stop_token, 9);
}

TEST(StopEvaluator, B6AStopTokenInsideABatchWinsOverALaterLengthLimit) {
  Case c{.pieces = std::vector<std::string>(50, "x"), .stop_token_ids = {40}, .max_tokens = 6};
  const std::vector<std::vector<TokenId>> batch = {{31, 32, 33, 40, 41, 42, 43}};
  const Reply reply = Answer(c, batch);
  EXPECT_EQ(reply.reason, FinishReason::kStop);
  EXPECT_EQ(reply.tokens, (std::vector<TokenId>{31, 32, 33, 40}));
  EXPECT_EQ(reply.text, "xxx");
}

TEST(StopEvaluator, B6TheLengthLimitInsideABatchWinsOverALaterStopToken) {
  Case c{.pieces = std::vector<std::string>(50, "x"), .stop_token_ids = {40}, .max_tokens = 3};
  const Reply reply = Answer(c, {{31, 32, 33, 40, 41, 42, 43}});
  EXPECT_EQ(reply.reason, FinishReason::kLength);
  EXPECT_EQ(reply.tokens, (std::vector<TokenId>{31, 32, 33}));
}

TEST(StopEvaluator, B6AStopStringInsideABatchCutsTokensAndTextThere) {
  const Reply reply =
      Answer({.pieces = {"ab", "cKL", "M!", "no"}, .stops = {"KLM"}}, {{0, 1, 2, 3}});
  EXPECT_EQ(reply.tokens, (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(reply.text, "abc");
  EXPECT_EQ(reply.shown.back(), "abc");
}

TEST(StopEvaluator, AStopTokenComesBeforeAStopStringInTheSameToken) {
  const Reply reply =
      Answer({.pieces = {"a", "KL"}, .stops = {"KL"}, .stop_token_ids = {1}}, {{0}, {1}});
  EXPECT_EQ(reply.matched_stop, -1);
  EXPECT_EQ(reply.matched_stop_token, 1);
  EXPECT_EQ(reply.text, "a");
}

TEST(StopEvaluator, AStopStringComesBeforeTheLengthLimitInTheSameToken) {
  const Reply reply =
      Answer({.pieces = {"a", "KL"}, .stops = {"KL"}, .max_tokens = 2}, OneByOne(2));
  EXPECT_EQ(reply.reason, FinishReason::kStop);
}

TEST(StopEvaluator, AnyOtherEndReleasesWhatWasHeld) {
  const Reply length =
      Answer({.pieces = {"a", "K"}, .stops = {"KL"}, .max_tokens = 2}, OneByOne(2));
  EXPECT_EQ(length.reason, FinishReason::kLength);
  EXPECT_EQ(length.text, "aK");
  EXPECT_EQ(length.shown, (std::vector<std::string>{"a", "aK"}));
  const Reply eos =
      Answer({.pieces = {"a", "K", "</s>"}, .stops = {"KL"}, .eos = {2}}, OneByOne(3));
  EXPECT_EQ(eos.text, "aK");
}

TEST(StopEvaluator, TheStopStringStaysInTheTextWhenAskedFor) {
  const Reply reply =
      Answer({.pieces = {"a", "KLb"}, .stops = {"KL"}, .include_stop_string = true}, OneByOne(2));
  EXPECT_EQ(reply.text, "aKL");
}

// Complete after three tokens.
class ThreeTokens final : public base::TokenConstraint {
 public:
  void FillAllowed(std::uint32_t, std::span<std::uint32_t>) const override {}
  std::uint32_t Advance(std::uint32_t state, TokenId) const override { return state + 1; }
  bool IsComplete(std::uint32_t state) const override { return state == 3; }
};

TEST(StopEvaluator, ACompleteGrammarEndsTheReplyBeforeTheLengthLimit) {
  const ThreeTokens grammar;
  const StopTerms terms{.grammar = &grammar, .max_tokens = 3};
  StopProgress progress;
  const std::vector<TokenId> tokens = {5, 6, 7, 8};
  const auto verdict = StopEvaluator({}).Evaluate(terms, 0, tokens, progress);
  EXPECT_EQ(verdict.outcome.num_accepted, 3u);
  EXPECT_EQ(verdict.outcome.finish, FinishReason::kStop);
}

TEST(StopEvaluatorDeathTest, AReplyThatIsAlreadyFullIsOurBug) {
  StopProgress progress;
  const std::vector<TokenId> tokens = {1};
  EXPECT_DEATH(StopEvaluator({}).Evaluate({.max_tokens = 4}, 4, tokens, progress),
               "num_generated < terms.max_tokens");
}

}  // namespace
}  // namespace pagoda::engine
