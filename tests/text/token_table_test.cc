#include "text/token_table.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::text {
namespace {

TEST(TokenTable, EveryFindableTokenIsFoundUnderItsBytes) {
  constexpr base::TokenId kCount = 1000;
  TokenTable table(kCount);
  for (base::TokenId id = 0; id < kCount; ++id) {
    table.SetBytes(id, "t" + std::to_string(id * 7));
    ASSERT_TRUE(table.MakeFindable(id));
  }
  for (base::TokenId id = 0; id < kCount; ++id) {
    EXPECT_EQ(table.Find("t" + std::to_string(id * 7)), id);
  }
  EXPECT_EQ(table.Find("t1"), std::nullopt);
  EXPECT_EQ(table.Find(""), std::nullopt);
}

TEST(TokenTable, ATokenThatIsNotFindableStillHasItsBytes) {
  TokenTable table(1);
  table.SetBytes(0, "<end>");
  EXPECT_EQ(table.Bytes(0), "<end>");
  EXPECT_EQ(table.Find("<end>"), std::nullopt);
}

TEST(TokenTable, TheSecondTokenOfTheSameBytesIsRefused) {
  TokenTable table(2);
  table.SetBytes(0, "a");
  table.SetBytes(1, "a");
  EXPECT_TRUE(table.MakeFindable(0));
  EXPECT_FALSE(table.MakeFindable(1));
  EXPECT_EQ(table.Find("a"), 0u);
}

TEST(TokenTableDeathTest, BytesAreSetOnceAndInRange) {
  TokenTable table(1);
  table.SetBytes(0, "a");
  EXPECT_DEATH(table.SetBytes(0, "b"), "check failed");
  EXPECT_DEATH(table.SetBytes(1, "b"), "check failed");
}

}  // namespace
}  // namespace pagoda::text
