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

TEST(Splitter, Llama3TakesNumbersByThreeAndQwen2OneByOne) {
  EXPECT_EQ(Pieces("llama-bpe", "It'S 12345, no\n\n\n x"),
            (Strings{"It", "'S", " ", "123", "45", ",", " no", "\n\n\n", " x"}));
  EXPECT_EQ(Pieces("qwen2", "It'S 12345, no\n\n\n x"),
            (Strings{"It", "'S", " ", "1", "2", "3", "4", "5", ",", " no", "\n\n\n", " x"}));
}

TEST(Splitter, Llama3LeavesLineEndsWithTheMarksAndSpacesBeforeThem) {
  EXPECT_EQ(Pieces("llama-bpe", "f(x);\n\n  return"),
            (Strings{"f", "(x", ");\n\n", " ", " return"}));
  EXPECT_EQ(Pieces("llama-bpe", "a \n \n  b"), (Strings{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(Pieces("llama-bpe", "it'\u017F"), (Strings{"it", "'\u017F"}));
}

// Work that grows with the square would take hours here: the test's time limit is the assertion.
TEST(Splitter, NoRuleSlowsDownOnTextMadeForIt) {
  for (const char* const rule : {"gpt-2", "llama-bpe", "qwen2", "smollm"}) {
    for (const std::string unit : {"a", "!", " ", "\n", "7", "'", " \n", "\t ", "a ", "'s",
                                   "\u0301", "\u3000", "\r", "!\n"}) {
      std::string text;
      while (text.size() < (1U << 20)) text += unit;
      text += "x";
      std::size_t bytes = 0;
      for (const std::string& piece : Pieces(rule, text)) bytes += piece.size();
      EXPECT_EQ(bytes, text.size()) << rule << ": " << unit;
    }
  }
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
