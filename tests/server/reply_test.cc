#include "server/core/reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::server {
namespace {

// Scores of tokens 10, 11, ... with so many alternatives each.
ScoreList Scores(std::initializer_list<std::uint32_t> widths) {
  ScoreList list;
  base::TokenId token = 10;
  for (const std::uint32_t width : widths) {
    const auto first = static_cast<std::uint32_t>(list.alternatives.size());
    for (base::TokenId i = 0; i < width; ++i) list.alternatives.push_back({100 * token + i, -1.0f});
    list.scores.push_back(
        {.of = {token++, -2.0f}, .rank = 1, .first_alternative = first, .num_alternatives = width});
  }
  return list;
}

TEST(ScoreList, AppendedScoresKeepTheirAlternatives) {
  ScoreList list = Scores({2, 0});
  const ScoreList more = Scores({1, 3});
  list.Append(std::span(more.scores).subspan(1), more.alternatives);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list.scores[2].of.token, 11u);
  const auto own = list.AlternativesOf(list.scores[2]);
  ASSERT_EQ(own.size(), 3u);
  EXPECT_EQ(own[0].token, 1100u);
  EXPECT_EQ(own[2].token, 1102u);
  EXPECT_EQ(list.AlternativesOf(list.scores[0])[1].token, 1001u);
}

TEST(ScoreList, WithinItsReserveAppendingDoesNotMoveAnything) {
  ScoreList list;
  list.Reserve(3, 2);
  const auto* scores = list.scores.data();
  const auto* alternatives = list.alternatives.data();
  const ScoreList more = Scores({2, 2, 2});
  list.Append(more.scores, more.alternatives);
  EXPECT_EQ(list.scores.data(), scores);
  EXPECT_EQ(list.alternatives.data(), alternatives);
}

ReplyPart Part() {
  ReplyPart part;
  part.prompt = {.text = "p", .tokens = {1}, .scores = Scores({1})};
  part.choices[0].text = "t";
  part.choices[0].tokens = {2, 3};
  part.choices[0].scores = Scores({1, 1});
  return part;
}

TEST(ReplyPart, JoiningPartsJoinsEveryField) {
  ReplyPart part = Part();
  part.Append(Part());
  EXPECT_EQ(part.prompt.text, "pp");
  EXPECT_EQ(part.prompt.tokens, (std::vector<base::TokenId>{1, 1}));
  EXPECT_EQ(part.prompt.scores.size(), 2u);
  const ChoicePart& choice = part.choices[0];
  EXPECT_EQ(choice.text, "tt");
  EXPECT_EQ(choice.tokens, (std::vector<base::TokenId>{2, 3, 2, 3}));
  EXPECT_EQ(choice.scores.size(), 4u);
  EXPECT_EQ(choice.scores.AlternativesOf(choice.scores.scores[3])[0].token, 1100u);
}

TEST(ReplyPart, AnEchoIsContentButDoesNotCountAgainstTheBound) {
  ReplyPart part;
  EXPECT_FALSE(part.has_content());
  part.prompt.tokens = {1, 2, 3};
  EXPECT_TRUE(part.has_content());
  EXPECT_EQ(part.num_counted(), 0u);
  part.prompt.scores = Scores({0, 0});
  part.choices[0].tokens = {4};
  EXPECT_EQ(part.num_counted(), 3u);
}

TEST(ReplyPart, ClearingLeavesNothing) {
  ReplyPart part = Part();
  part.end.emplace();
  part.Clear();
  EXPECT_FALSE(part.has_content());
  EXPECT_FALSE(part.end.has_value());
  EXPECT_TRUE(part.choices[0].scores.empty());
}

}  // namespace
}  // namespace pagoda::server
