#include "text/splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text {
namespace {

std::vector<std::string> Pieces(std::string_view rule, std::string_view text) {
  const auto splitter = Splitter::Create(rule);
  EXPECT_TRUE(splitter.ok()) << splitter.status();
  std::vector<std::string_view> pieces;
  EXPECT_TRUE((*splitter)->Split(text, pieces).ok());
  return {pieces.begin(), pieces.end()};
}

using Strings = std::vector<std::string>;

TEST(Splitter, Gpt2KeepsNumbersTogetherWithTheSpaceBeforeThem) {
  EXPECT_EQ(Pieces("gpt-2", "it's 12345, no\n\n\n x"),
            (Strings{"it", "'s", " 12345", ",", " no", "\n\n\n", " x"}));
}

TEST(Splitter, SmollmCutsOutEveryDigitFirst) {
  EXPECT_EQ(Pieces("smollm", "it's 12345, no\n\n\n x"),
            (Strings{"it", "'s", " ", "1", "2", "3", "4", "5", ",", " no", "\n\n\n", " x"}));
  EXPECT_EQ(Pieces("smollm", "a  7"), (Strings{"a", "  ", "7"}));
  EXPECT_EQ(Pieces("smollm", "\u0663\u00BD\u2167"), (Strings{"\u0663", "\u00BD", "\u2167"}));
}

TEST(Splitter, OnlyTheLastOfSeveralSpacesGoesWithTheNextWord) {
  EXPECT_EQ(Pieces("gpt-2", "a   b \t c  "), (Strings{"a", "  ", " b", " \t", " c", "  "}));
}

TEST(Splitter, U180EIsNotWhiteSpaceAndU0085Is) {
  EXPECT_EQ(Pieces("gpt-2", "!\u180E!"), (Strings{"!\u180E!"}));
  EXPECT_EQ(Pieces("gpt-2", "!\u0085!"), (Strings{"!", "\u0085", "!"}));
}

TEST(Splitter, TheLongSIsNoContraction) {
  EXPECT_EQ(Pieces("gpt-2", "it'\u017F"), (Strings{"it", "'", "\u017F"}));
  EXPECT_EQ(Pieces("gpt-2", "it'S"), (Strings{"it", "'", "S"}));
}

TEST(Splitter, LettersAndNumbersOfUnicode16AreKnown) {
  EXPECT_EQ(Pieces("gpt-2", "a\U00031350\U0001E5D0b"), (Strings{"a\U00031350\U0001E5D0b"}));
  EXPECT_EQ(Pieces("gpt-2", "1\U00010D40\U000116D0"), (Strings{"1\U00010D40\U000116D0"}));
  EXPECT_EQ(Pieces("smollm", "a\U00011DE0b"), (Strings{"a", "\U00011DE0", "b"}));
}

TEST(Splitter, AMegabyteWithoutAPlaceToSplitIsOnePiece) {
  constexpr std::size_t kBytes = 1 << 20;
  for (const char c : {'a', '!', ' '}) {
    const std::string text(kBytes, c);
    EXPECT_EQ(Pieces("smollm", text), Strings{text});
    EXPECT_EQ(Pieces("gpt-2", text), Strings{text});
  }
  EXPECT_EQ(Pieces("gpt-2", std::string(kBytes, ' ') + "x").size(), 2u);
  EXPECT_EQ(Pieces("smollm", std::string(kBytes, '7')).size(), kBytes);
}

TEST(Splitter, G10_AnUnknownRuleIsRefusedWithTheKnownOnes) {
  const auto splitter = Splitter::Create("default");
  ASSERT_EQ(splitter.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(splitter.status().message(),
            "pre-tokenizer 'default' is not known; known are gpt-2, llama-bpe, qwen2, smollm");
}

}  // namespace
}  // namespace pagoda::text
