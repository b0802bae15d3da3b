#include "text/score_pairs.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace pagoda::text {
namespace {

using Kind = Vocabulary::TokenKind;

Vocabulary Small() {
  Vocabulary vocabulary;
  vocabulary.tokens = {"<s>", "a", "b", "ab", "aba", "cb", "<unused>"};
  vocabulary.kinds = {Kind::kControl, Kind::kNormal, Kind::kNormal, Kind::kNormal,
                      Kind::kNormal,  Kind::kNormal, Kind::kUnused};
  vocabulary.scores = {0, 0, 0, -2, -1, -2, 0};
  return vocabulary;
}

// "left+right=token@rank" for each.
std::string Shown(const ScorePairs& found) {
  std::string all;
  for (const ScorePairs::Pair& pair : found.pairs) {
    all += std::to_string(pair.left) + "+" + std::to_string(pair.right) + "=" +
           std::to_string(pair.result.token) + "@" + std::to_string(pair.result.rank) + " ";
  }
  return all;
}

std::string Refusal(const std::function<void(Vocabulary&)>& change) {
  Vocabulary vocabulary = Small();
  change(vocabulary);
  const auto found = FindScorePairs(vocabulary);
  if (found.ok()) return "accepted";
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(found.status().message());
}

TEST(ScorePairs, EveryWayToMakeATokenIsAPairAndRanksGoByScore) {
  const auto found = FindScorePairs(Small());
  ASSERT_TRUE(found.ok()) << found.status();
  // "c" is no token, yet "cb" is made of it: it is symbol 7. Score 0 has rank 0 though nothing is
  // merged at it.
  EXPECT_EQ(found->bare_characters, std::vector<std::string>{"c"});
  EXPECT_EQ(Shown(*found), "1+2=3@2 3+1=4@1 7+2=5@2 ");
}

TEST(ScorePairs, WhatCannotBeMergedExactlyIsRefusedByName) {
  EXPECT_EQ(Refusal([](Vocabulary& v) { v.scores.pop_back(); }),
            "the vocabulary has 7 tokens and 6 scores");
  EXPECT_EQ(Refusal([](Vocabulary& v) { v.scores[3] = std::numeric_limits<float>::infinity(); }),
            "token 3 has no finite score");
  EXPECT_EQ(Refusal([](Vocabulary& v) { v.tokens[4] = std::string(257, 'a'); }),
            "token 4 has 257 bytes; at most 256 are possible in one that is merged");
  EXPECT_EQ(Refusal([](Vocabulary& v) { v.tokens[4] = "a\xFF"; }), "token 4 is not valid UTF-8");
  EXPECT_EQ(Refusal([](Vocabulary& v) { v.kinds[3] = Kind::kUnused; }),
            "token 3 ('ab') is unused but would be made by merging, which is not built");
  EXPECT_EQ(Refusal([](Vocabulary& v) { v.kinds[1] = Kind::kUnused; }),
            "token 1 ('a') is unused but would be made by merging, which is not built");
  EXPECT_EQ(Refusal([](Vocabulary& v) {
              v.kinds[6] = Kind::kUserDefined;
              v.tokens[6] = "x▁y";
            }),
            "token 6 ('x▁y') is user-defined and has a space mark, which is not built");
}

}  // namespace
}  // namespace pagoda::text
