#include "text/added_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pagoda::text {
namespace {

constexpr AddedTokens::Traits kControl{.is_control = true};
constexpr AddedTokens::Traits kUserDefined{};

// "begin-end:token" for each, so that a difference can be read.
std::string FoundIn(const AddedTokens& added, std::string_view text,
                    const std::vector<AddedTokens::Range>& control_ranges) {
  std::string all;
  for (const AddedTokens::Found& found : added.FindAll(text, control_ranges)) {
    all += std::to_string(found.begin) + "-" + std::to_string(found.end) + ":" +
           std::to_string(found.token) + " ";
  }
  return all;
}

TEST(AddedTokens, TheLeftmostWinsThenTheLongest) {
  AddedTokens added;
  added.Add("ab", 1, kUserDefined);
  added.Add("abc", 2, kUserDefined);
  added.Add("bcd", 3, kUserDefined);
  EXPECT_EQ(FoundIn(added, "abcd ab bcd", {}), "0-3:2 5-7:1 8-11:3 ");
}

TEST(AddedTokens, AControlTokenCountsOnlyInsideOneAllowedRange) {
  AddedTokens added;
  added.Add("<s>", 1, kControl);
  EXPECT_EQ(FoundIn(added, "<s><s><s>", {}), "");
  EXPECT_EQ(FoundIn(added, "<s><s><s>", {{3, 6}}), "3-6:1 ");
  EXPECT_EQ(FoundIn(added, "<s><s><s>", {{0, 3}, {6, 9}}), "0-3:1 6-9:1 ");
  EXPECT_EQ(FoundIn(added, "<s><s><s>", {{0, 5}, {5, 9}}), "0-3:1 6-9:1 ");
  EXPECT_EQ(FoundIn(added, "<s>", {{0, 2}}), "");
  EXPECT_EQ(FoundIn(added, "<s>", {{1, 3}}), "");
}

TEST(AddedTokens, AShorterUserDefinedTokenStandsWhereTheLongerControlTokenMayNot) {
  AddedTokens added;
  added.Add("[x]", 1, kUserDefined);
  added.Add("[x]]", 2, kControl);
  EXPECT_EQ(FoundIn(added, "[x]]", {{0, 4}}), "0-4:2 ");
  EXPECT_EQ(FoundIn(added, "[x]]", {{0, 3}}), "0-3:1 ");
  EXPECT_EQ(FoundIn(added, "[x]]", {}), "0-3:1 ");
}

TEST(AddedTokens, AFailedLongerMatchDoesNotHideALaterToken) {
  AddedTokens added;
  added.Add("aab", 1, kUserDefined);
  EXPECT_EQ(FoundIn(added, "aaab", {}), "1-4:1 ");
  EXPECT_EQ(FoundIn(added, "aa", {}), "");
  EXPECT_EQ(FoundIn(added, "", {}), "");
}

TEST(AddedTokensDeathTest, AnEmptyOrRepeatedSpellingAborts) {
  AddedTokens added;
  added.Add("a", 1, kUserDefined);
  EXPECT_DEATH(added.Add("", 2, kUserDefined), "check failed");
  EXPECT_DEATH(added.Add("a", 2, kControl), "check failed");
}

}  // namespace
}  // namespace pagoda::text
