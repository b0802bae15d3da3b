#include "text/stop_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.h"
#include "tests/fakes/piece_tokenizer.h"

namespace pagoda::text {
namespace {

using base::StopCondition;
using base::StopStep;
using base::TokenId;
using fakes::PieceTokenizer;

std::unique_ptr<const StopCondition> Make(const std::vector<std::string>& stops,
                                          const Tokenizer& tokenizer) {
  auto made = MakeStopAutomaton(stops, tokenizer);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// A reply as the engine makes it: tokens are taken one by one; from `min_tokens` on the first match
// ends it, and the text is cut at the match's start.
struct Reply {
  std::string text;
  std::size_t num_tokens = 0;
  int stop = -1;
};

Reply Take(const StopCondition& condition, const Tokenizer& tokenizer, std::size_t num_tokens,
           std::size_t min_tokens = 0) {
  Reply reply;
  std::uint32_t state = StopCondition::kStartState;
  for (TokenId token = 0; token < num_tokens && reply.stop < 0; ++token) {
    const StopStep step = condition.Advance(state, token);
    const std::size_t before = reply.text.size();
    reply.text += TextBytes(tokenizer, token);
    EXPECT_EQ(step.token_bytes, reply.text.size() - before);
    state = step.next_state;
    if (++reply.num_tokens >= min_tokens && step.matched_stop >= 0) {
      reply.stop = step.matched_stop;
      reply.text.resize(before + step.match_end - step.match_length);
    }
  }
  return reply;
}

// A control token that the text skips has no offset; one that it shows is text like any other.
TEST(StopAutomaton, AControlTokenCountsOnlyWhereTheTextShowsIt) {
  const PieceTokenizer tokenizer({"K", "<s>", "L"}, {1});
  for (const auto control : {ControlTokens::kSkipped, ControlTokens::kShown}) {
    const bool shown = control == ControlTokens::kShown;
    const std::vector<std::string> stops = {shown ? "<s>L" : "KL"};
    const auto condition = *MakeStopAutomaton(stops, tokenizer, control);
    std::uint32_t state = StopCondition::kStartState;
    state = condition->Advance(state, 0).next_state;
    const StopStep special = condition->Advance(state, 1);
    EXPECT_EQ(special.token_bytes, shown ? 3u : 0u);
    const StopStep last = condition->Advance(special.next_state, 2);
    EXPECT_EQ(last.matched_stop, 0);
    EXPECT_EQ(last.match_length, shown ? 4u : 2u);
  }
}

TEST(StopAutomaton, B1_AStopSpanningSeveralTokensIsHeldFromItsFirstByte) {
  const PieceTokenizer tokenizer({"KL", "M", "NO", "P"});
  const auto condition = Make({"KLMNOP"}, tokenizer);
  std::uint32_t state = StopCondition::kStartState;
  std::vector<std::uint32_t> held;
  for (TokenId token = 0; token < 3; ++token) {
    const StopStep step = condition->Advance(state, token);
    EXPECT_EQ(step.matched_stop, -1);
    held.push_back(step.held_bytes);
    state = step.next_state;
  }
  EXPECT_EQ(held, (std::vector<std::uint32_t>{2, 3, 5}));
  const StopStep last = condition->Advance(state, 3);
  EXPECT_EQ(last.matched_stop, 0);
  EXPECT_EQ(last.match_end, 1u);
  EXPECT_EQ(last.match_length, 6u);
  EXPECT_EQ(Take(*condition, tokenizer, 4).text, "");
}

TEST(StopAutomaton, B1_NothingStaysHeldOnceTheStopCanNoLongerMatch) {
  const PieceTokenizer tokenizer({"KL", "M", "NO", "Q"});
  const auto condition = Make({"KLMNOP"}, tokenizer);
  std::uint32_t state = StopCondition::kStartState;
  StopStep step;
  for (TokenId token = 0; token < 4; ++token) {
    step = condition->Advance(state, token);
    state = step.next_state;
  }
  EXPECT_EQ(step.held_bytes, 0u);
  EXPECT_EQ(Take(*condition, tokenizer, 4).text, "KLMNOQ");
}

TEST(StopAutomaton, B1_AFailedStartMayContainTheRealOne) {
  const PieceTokenizer tokenizer({"K", "KK", "L"});
  const Reply reply = Take(*Make({"KKL"}, tokenizer), tokenizer, 3);
  EXPECT_EQ(reply.text, "K");
  EXPECT_EQ(reply.stop, 0);
}

TEST(StopAutomaton, B3_TheStateAdvancesBelowMinTokensAndMatchesThereAreIgnored) {
  const PieceTokenizer tokenizer({"a", "x\n", "b", "y\n", "c", "z\n", "d"});
  const auto condition = Make({"\n"}, tokenizer);
  const Reply reply = Take(*condition, tokenizer, 7, 5);
  EXPECT_EQ(reply.num_tokens, 6u);
  EXPECT_EQ(reply.text, "ax\nby\ncz");
  // A stop that starts below min_tokens and ends above it still counts.
  EXPECT_EQ(Take(*Make({"\ncz"}, tokenizer), tokenizer, 7, 5).text, "ax\nby");
}

TEST(StopAutomaton, B6_AStopEndingInsideABatchOfTokensCutsAtItsOwnToken) {
  const PieceTokenizer tokenizer({"one ", "two ", "ST", "OP four", " five", " six"});
  const Reply reply = Take(*Make({"STOP"}, tokenizer), tokenizer, 6);
  EXPECT_EQ(reply.num_tokens, 4u);
  EXPECT_EQ(reply.text, "one two ");
}

// vllm#45636: stops that overlap, and hold-back that is measured in the wrong unit.
TEST(StopAutomaton, Vllm45636_OverlappingStopsNeverLeavePartOfAStopBehind) {
  const PieceTokenizer tokenizer({"see </", "tool", "></tool>", "</to", "ol_call>"});
  const auto condition = Make({"</tool>", "</tool></tool>", "tool>"}, tokenizer);
  const Reply reply = Take(*condition, tokenizer, 3);
  EXPECT_EQ(reply.text, "see ");
  EXPECT_EQ(reply.stop, 0);  // "tool>" ends at the same byte; the longer one wins
  const Reply other = Take(*Make({"tool_call>", "</tool_call>", "l_c"}, tokenizer), tokenizer, 5);
  EXPECT_EQ(other.stop, 2);  // ends first, although the others started before
  EXPECT_EQ(other.text, "see </tool></tool></too");
}

TEST(StopAutomaton, Vllm45636_HeldBytesAreExactInsideAMultiByteCharacter) {
  const PieceTokenizer tokenizer({"\xF0\x9F", "\x90\xA7", "\xF0\x9F\x90", "\xA8"});
  const auto condition = Make({"\xF0\x9F\x90\xA7!"}, tokenizer);
  const StopStep half = condition->Advance(StopCondition::kStartState, 0);
  EXPECT_EQ(half.held_bytes, 2u);
  EXPECT_EQ(condition->Advance(half.next_state, 1).held_bytes, 4u);
  const StopStep three = condition->Advance(half.next_state, 2);
  EXPECT_EQ(three.held_bytes, 3u);
  EXPECT_EQ(condition->Advance(three.next_state, 3).held_bytes, 0u);
}

TEST(StopAutomaton, AControlTokenAddsNoBytesAndDoesNotBreakAStop) {
  const PieceTokenizer tokenizer({"EN", "<|x|>", "D"}, {1});
  const Reply reply = Take(*Make({"END"}, tokenizer), tokenizer, 3);
  EXPECT_EQ(reply.stop, 0);
  EXPECT_EQ(reply.text, "");
  EXPECT_EQ(Take(*Make({"<|x|>"}, tokenizer), tokenizer, 3).stop, -1);
}

TEST(StopAutomaton, TheFirstOfTwoMatchesInsideOneTokenIsReported) {
  const PieceTokenizer tokenizer({"a.b!c."});
  const StopStep step = Make({"!", "."}, tokenizer)->Advance(StopCondition::kStartState, 0);
  EXPECT_EQ(step.matched_stop, 1);
  EXPECT_EQ(step.match_end, 2u);
}

TEST(StopAutomaton, WithoutStopStringsItOnlyCountsBytes) {
  const PieceTokenizer tokenizer({"abc"});
  const StopStep step = Make({}, tokenizer)->Advance(StopCondition::kStartState, 0);
  EXPECT_EQ(step.token_bytes, 3u);
  EXPECT_EQ(step.matched_stop, -1);
  EXPECT_EQ(step.held_bytes, 0u);
}

TEST(StopAutomaton, BadStopsAreRefusedByFieldWithTheNumbers) {
  const PieceTokenizer tokenizer({"a"});
  const auto refused = [&](const std::vector<std::string>& stops) {
    return MakeStopAutomaton(stops, tokenizer).status();
  };
  EXPECT_EQ(base::FieldOf(refused(std::vector<std::string>(17, "x"))), "stop");
  EXPECT_NE(refused(std::vector<std::string>(17, "x")).message().find("17"), std::string::npos);
  EXPECT_EQ(base::FieldOf(refused({"x", ""})), "stop");
  EXPECT_EQ(base::FieldOf(refused({std::string(257, 'x')})), "stop");
  EXPECT_TRUE(refused(std::vector<std::string>(16, std::string(256, 'x'))).ok());
}

TEST(StopAutomatonDeathTest, AStateOfAnotherAutomatonIsOurBug) {
  const PieceTokenizer tokenizer({"a"});
  const auto condition = Make({"ab"}, tokenizer);
  EXPECT_DEATH(condition->Advance(3, 0), "state < facts_.size\\(\\)");
}

// The promise, read straight from the header: every end position and every stop, over the whole
// text.
struct NaiveMatcher {
  std::vector<std::string> stops;
  std::string text;

  StopStep Advance(std::string_view bytes) {
    StopStep step;
    step.token_bytes = static_cast<std::uint32_t>(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      text += bytes[i];
      if (step.matched_stop >= 0) continue;
      for (std::size_t s = 0; s < stops.size(); ++s) {
        if (!text.ends_with(stops[s]) || stops[s].size() <= step.match_length) continue;
        step.matched_stop = static_cast<std::int32_t>(s);
        step.match_end = static_cast<std::uint32_t>(i + 1);
        step.match_length = static_cast<std::uint32_t>(stops[s].size());
      }
    }
    for (const std::string& stop : stops) {
      for (std::size_t length = stop.size() - 1; length > step.held_bytes; --length) {
        if (text.ends_with(stop.substr(0, length))) {
          step.held_bytes = static_cast<std::uint32_t>(length);
        }
      }
    }
    return step;
  }
};

std::string RandomString(std::mt19937_64& random, std::size_t max_length, std::size_t letters) {
  std::string made(1 + random() % max_length, '\0');
  for (char& c : made) c = static_cast<char>(0xfe + random() % letters);  // crosses 0xff -> 0
  return made;
}

TEST(StopAutomaton, EqualsANaiveMatcherOverRandomStopsAndTokens) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 400; ++round) {
    const std::size_t letters = 1 + random() % 4;
    std::vector<std::string> pieces;
    for (int i = 0; i < 12; ++i) pieces.push_back(RandomString(random, 6, letters));
    pieces.emplace_back();
    std::vector<std::string> stops;
    for (std::size_t n = 1 + random() % kMaxStopStrings; n > 0; --n) {
      stops.push_back(RandomString(random, 9, letters));
    }
    const PieceTokenizer tokenizer(pieces, {3});
    const auto condition = Make(stops, tokenizer);
    NaiveMatcher naive{stops, {}};
    std::uint32_t state = StopCondition::kStartState;
    for (int i = 0; i < 60; ++i) {
      const auto token = static_cast<TokenId>(random() % pieces.size());
      const StopStep ours = condition->Advance(state, token);
      const StopStep theirs = naive.Advance(TextBytes(tokenizer, token));
      ASSERT_EQ(ours.token_bytes, theirs.token_bytes) << "seed " << seed << " round " << round;
      ASSERT_EQ(ours.matched_stop, theirs.matched_stop) << "seed " << seed << " round " << round;
      ASSERT_EQ(ours.match_end, theirs.match_end) << "seed " << seed << " round " << round;
      ASSERT_EQ(ours.match_length, theirs.match_length) << "seed " << seed << " round " << round;
      ASSERT_EQ(ours.held_bytes, theirs.held_bytes) << "seed " << seed << " round " << round;
      state = ours.next_state;
    }
  }
}

}  // namespace
}  // namespace pagoda::text
