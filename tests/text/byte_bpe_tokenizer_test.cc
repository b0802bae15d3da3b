#include "text/byte_bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/text/vocabulary_file.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Ids = std::vector<TokenId>;
using Specials = Tokenizer::Specials;

std::unique_ptr<const Tokenizer> MakeFixture(const std::string& pre_tokenizer = "smollm") {
  Vocabulary vocabulary = FixtureVocabulary();
  vocabulary.pre_tokenizer = pre_tokenizer;
  auto tokenizer = MakeByteBpeTokenizer(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// A golden file of tests/oracle/make_tokenizer_goldens.py, read front to back.
class Golden {
 public:
  explicit Golden(const std::string& rule) {
    std::ifstream file(PAGODA_SOURCE_DIR "/tests/oracle/goldens/tokenizer_" + rule + ".bin",
                       std::ios::binary);
    data_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  template <typename T>
  T Number() {
    T value{};
    EXPECT_LE(at_ + sizeof(T), data_.size());
    std::memcpy(&value, data_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string Text() {
    const auto length = Number<std::uint32_t>();
    at_ += length;
    return data_.substr(at_ - length, length);
  }
  MarkedText Marked() {
    MarkedText text;
    for (auto parts = Number<std::uint32_t>(); parts > 0; --parts) {
      const bool from_input = Number<std::uint8_t>() != 0;
      text.parts.push_back({.text = Text(), .from_input = from_input});
    }
    return text;
  }
  Ids ExpectedIds() {
    Ids ids(Number<std::uint32_t>());
    for (TokenId& id : ids) id = Number<std::uint16_t>();
    return ids;
  }
  bool done() const { return at_ >= data_.size(); }

 private:
  std::string data_;
  std::size_t at_ = 0;
};

constexpr int kPlainMode = 0;
constexpr int kMarkedMode = 2;

void CompareStrings(const Tokenizer& tokenizer, Golden& golden) {
  int count = 0;
  for (; !golden.done(); ++count) {
    const int mode = golden.Number<std::uint8_t>();
    absl::StatusOr<Ids> ids;
    std::string shown;
    if (mode == kMarkedMode) {
      const MarkedText text = golden.Marked();
      shown = text.Joined();
      ids = tokenizer.EncodeMarked(text);
    } else {
      shown = golden.Text();
      ids = tokenizer.Encode(shown, mode == kPlainMode ? Specials::kPlain : Specials::kControl);
    }
    ASSERT_TRUE(ids.ok()) << ids.status();
    ASSERT_EQ(*ids, golden.ExpectedIds()) << "mode " << mode << ": " << shown;
  }
  EXPECT_GT(count, 1500);
}

TEST(ByteBpeTokenizer, IdsEqualTheOraclesUnderTheSmollmRule) {
  const auto tokenizer = MakeFixture("smollm");
  Golden golden("smollm");
  CompareStrings(*tokenizer, golden);
}

TEST(ByteBpeTokenizer, IdsEqualTheOraclesUnderTheGpt2Rule) {
  const auto tokenizer = MakeFixture("gpt-2");
  Golden golden("gpt-2");
  CompareStrings(*tokenizer, golden);
}

TEST(ByteBpeTokenizer, TheBytesOfTheIdsAreTheTextAgain) {
  const auto tokenizer = MakeFixture();
  const std::string text = "if (a && b) { return \"na\xC3\xAFve\"; }  // 12 \xE4\xBD\xA0\n\n";
  const auto ids = tokenizer->Encode(text, Specials::kPlain);
  ASSERT_TRUE(ids.ok());
  std::string bytes;
  for (const TokenId id : *ids) bytes += tokenizer->Bytes(id);
  EXPECT_EQ(bytes, text);
}

TEST(ByteBpeTokenizer, AControlTokenInPlainTextIsOrdinaryCharacters) {
  const auto tokenizer = MakeFixture();
  const auto plain = tokenizer->Encode("<|im_end|>", Specials::kPlain);
  ASSERT_TRUE(plain.ok());
  EXPECT_GT(plain->size(), 1u);
  for (const TokenId id : *plain) EXPECT_FALSE(tokenizer->IsControl(id));
  EXPECT_EQ(*tokenizer->Encode("<|im_end|>", Specials::kControl), Ids{2});
  EXPECT_TRUE(tokenizer->IsControl(2));
  EXPECT_EQ(tokenizer->Bytes(2), "<|im_end|>");
  EXPECT_EQ(TextBytes(*tokenizer, 2), "");
}

TEST(ByteBpeTokenizer, InputNeverBecomesAControlTokenNotEvenAcrossABorder) {
  const auto tokenizer = MakeFixture();
  const auto control_count = [&](const MarkedText& text) {
    const auto ids = tokenizer->EncodeMarked(text);
    EXPECT_TRUE(ids.ok());
    int count = 0;
    for (const TokenId id : *ids) count += tokenizer->IsControl(id) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(control_count({{{"<|im_start|>", false}, {"a<|im_end|>b", true}}}), 1);
  EXPECT_EQ(control_count({{{"<|im_", false}, {"end|>", true}}}), 0);
  EXPECT_EQ(control_count({{{"<|im_end", true}, {"|>", false}}}), 0);
  EXPECT_EQ(control_count({{{"<|im_end|>", true}, {"<|im_end|>", false}}}), 1);
}

TEST(ByteBpeTokenizer, NeighbouringPartsAreSplitAsOneText) {
  const auto tokenizer = MakeFixture();
  const auto joined = tokenizer->Encode("<|im_start|>the return", Specials::kControl);
  const auto marked =
      tokenizer->EncodeMarked({{{"<|im_start|>th", false}, {"e re", true}, {"turn", false}}});
  ASSERT_TRUE(marked.ok());
  EXPECT_EQ(*marked, *joined);
}

TEST(ByteBpeTokenizer, BadUtf8IsRefusedWithTheOffset) {
  const auto tokenizer = MakeFixture();
  const auto ids = tokenizer->Encode("ab\xED\xA0\x80", Specials::kPlain);
  ASSERT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ids.status().message(), "text is not valid UTF-8: first bad byte at offset 2");
}

// Quadratic work would take hours here: the test's time limit is the assertion.
TEST(ByteBpeTokenizer, AMegabyteWithoutAPlaceToSplitIsEncoded) {
  const auto tokenizer = MakeFixture();
  constexpr std::size_t kBytes = 1 << 20;
  for (const std::string unit : {"a", "ab", "return", "=", " ", "\xE4\xBD\xA0"}) {
    std::string text;
    while (text.size() < kBytes) text += unit;
    const auto ids = tokenizer->Encode(text, Specials::kPlain);
    ASSERT_TRUE(ids.ok());
    std::string bytes;
    for (const TokenId id : *ids) bytes += tokenizer->Bytes(id);
    EXPECT_EQ(bytes, text);
  }
}

Vocabulary Small() {
  using Kind = Vocabulary::TokenKind;
  return {.pre_tokenizer = "smollm",
          .tokens = {"<s>", "a", "b", "ab"},
          .kinds = {Kind::kControl, Kind::kNormal, Kind::kNormal, Kind::kNormal},
          .merges = {"a b"},
          .bos = 0,
          .eos = {0},
          .adds_bos = true};
}

std::string Refusal(const Vocabulary& vocabulary) {
  const auto tokenizer = MakeByteBpeTokenizer(vocabulary);
  if (tokenizer.ok()) return "accepted";
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tokenizer.status().message());
}

TEST(ByteBpeTokenizer, WhatTheVocabularySaysIsAnswered) {
  const auto tokenizer = MakeByteBpeTokenizer(Small());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 4u);
  EXPECT_EQ((*tokenizer)->bos_token(), 0u);
  EXPECT_EQ((*tokenizer)->eos_tokens(), Ids{0});
  EXPECT_TRUE((*tokenizer)->adds_bos());
  EXPECT_EQ(*(*tokenizer)->Encode("abba", Specials::kPlain), (Ids{3, 2, 1}));
}

TEST(ByteBpeTokenizer, AVocabularyThatContradictsItselfIsRefusedByName) {
  using Kind = Vocabulary::TokenKind;
  const auto changed = [](auto change) {
    Vocabulary vocabulary = Small();
    change(vocabulary);
    return Refusal(vocabulary);
  };
  EXPECT_EQ(changed([](Vocabulary& v) { v.tokens.clear(); }), "the vocabulary has no tokens");
  EXPECT_EQ(changed([](Vocabulary& v) { v.kinds.pop_back(); }),
            "the vocabulary has 4 tokens and 3 kinds");
  EXPECT_EQ(changed([](Vocabulary& v) { v.tokens[2] = "a"; }),
            "token 2 repeats the spelling of token 1: 'a'");
  EXPECT_EQ(changed([](Vocabulary& v) { v.tokens[2] = ""; }), "token 2 is empty");
  EXPECT_EQ(changed([](Vocabulary& v) { v.tokens[2] = "b c"; }),
            "token 2 is not spelt in the byte alphabet: 'b c'");
  EXPECT_EQ(changed([](Vocabulary& v) { v.kinds[2] = Kind::kByte; }),
            "token 2 is a byte-fallback token; a byte-level vocabulary has none");
  EXPECT_EQ(changed([](Vocabulary& v) { v.merges[0] = "ab"; }),
            "merge 0 ('ab'): expected two tokens with a space between");
  EXPECT_EQ(changed([](Vocabulary& v) { v.merges[0] = "a c"; }),
            "merge 0 ('a c'): 'c' is not a normal token");
  EXPECT_EQ(changed([](Vocabulary& v) { v.merges[0] = "b a"; }),
            "merge 0 ('b a'): 'ba' is not a normal token");
  EXPECT_EQ(changed([](Vocabulary& v) { v.merges.push_back("a b"); }),
            "merge 1 ('a b'): repeats an earlier merge");
  EXPECT_EQ(changed([](Vocabulary& v) { v.bos = 4; }),
            "BOS token 4 is outside the vocabulary of 4");
  EXPECT_EQ(changed([](Vocabulary& v) { v.eos.push_back(9); }),
            "EOS token 9 is outside the vocabulary of 4");
  EXPECT_EQ(changed([](Vocabulary& v) { v.bos.reset(); }),
            "BOS is to be added but no BOS token is named");
}

}  // namespace
}  // namespace pagoda::text
