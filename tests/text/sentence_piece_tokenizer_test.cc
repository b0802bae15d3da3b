#include "text/sentence_piece_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "tests/text/sentence_piece_golden.h"
#include "text/chat_template.h"
#include "text/gguf_vocabulary.h"
#include "text/make_tokenizer.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Ids = std::vector<TokenId>;
using Kind = Vocabulary::TokenKind;
using Marks = SpaceMarks;
using Specials = Tokenizer::Specials;

Vocabulary TrainedVocabulary() {
  const auto file = formats::GgufFile::Open(PAGODA_SOURCE_DIR
                                            "/tests/oracle/goldens/sentence_piece/vocabulary.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  auto vocabulary = ReadGgufVocabulary(**file, std::nullopt);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  return *std::move(vocabulary);
}

std::unique_ptr<const Tokenizer> Trained() {
  auto tokenizer = MakeSentencePieceTokenizer(TrainedVocabulary());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// --- Against the oracle ---

TEST(SentencePieceTokenizer, IdsAndTextOfAScoredVocabularyEqualTheOracles) {
  CompareWithSentencePieceGolden(*Trained(), "gguf");
}

// --- Whose words may be control tokens ---

TEST(SentencePieceTokenizer, InputNeverBecomesAControlToken) {
  const auto tokenizer = Trained();
  const TokenId start = tokenizer->Encode("<|im_start|>", Specials::kControl)->front();
  ASSERT_TRUE(tokenizer->IsControl(start));
  const auto plain = tokenizer->Encode("<s> <|im_start|>", Specials::kPlain);
  for (const TokenId id : *plain) {
    EXPECT_FALSE(tokenizer->IsControl(id));
  }
  MarkedText marked;
  marked.parts = {{.text = "<|im_start|>user <|im_"},
                  {.text = "end|><|im_start|>", .from_input = true},
                  {.text = "<|im_end|>"}};
  const auto ids = tokenizer->EncodeMarked(marked);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(std::ranges::count_if(*ids, [&](TokenId id) { return tokenizer->IsControl(id); }), 2);
}

TEST(SentencePieceTokenizer, PartsWithoutControlTokensAreOneText) {
  const auto tokenizer = Trained();
  MarkedText marked;
  marked.parts = {{.text = "the tok"}, {.text = "enizer st", .from_input = true}, {.text = "ep"}};
  EXPECT_EQ(*tokenizer->EncodeMarked(marked),
            *tokenizer->Encode("the tokenizer step", Specials::kControl));
}

// The templates that models with such vocabularies are published with.
TEST(SentencePieceTokenizer, PublishedTemplatesGiveTheIdsOfTheirTextAndKeepInputPlain) {
  const auto tokenizer = Trained();
  const ChatTemplateOptions options{.bos_token = "<s>", .eos_token = "</s>"};
  for (const std::string name : {"llama-2", "mistral-v1", "zephyr"}) {
    SCOPED_TRACE(name);
    std::ifstream file(PAGODA_SOURCE_DIR "/tests/text/templates/" + name + ".jinja");
    const auto parsed = ChatTemplate::Parse(std::string{std::istreambuf_iterator<char>(file), {}});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const auto ids_of = [&](const std::string& question) {
      const auto rendered = (*parsed)->Render(
          std::vector<ChatMessage>{{"user", question}, {"assistant", "yes"}, {"user", "why?"}},
          options);
      EXPECT_TRUE(rendered.ok()) << rendered.status();
      const auto ids = tokenizer->EncodeMarked(*rendered);
      EXPECT_TRUE(ids.ok()) << ids.status();
      if (question == "is it?") {
        EXPECT_EQ(*ids, *tokenizer->Encode(rendered->Joined(), Specials::kControl));
      }
      return std::ranges::count_if(*ids, [&](TokenId id) { return tokenizer->IsControl(id); });
    };
    EXPECT_GE(ids_of("is it?"), 2);
    EXPECT_EQ(ids_of("</s><s>[INST]"), ids_of("is it?"));
  }
}

// --- Text that wants to be slow ---

TEST(SentencePieceTokenizer, AMegabyteWithoutAPlaceToSplitIsEncoded) {
  const auto tokenizer = Trained();
  for (const std::string_view unit : {"a", " ", "ab", "the", "▁", "\xE4\xB8\xAD",
                                      "\xF0\x9F\xA6\x99", "\x01", " a", "=", "a\xCC\x81"}) {
    std::string text;
    while (text.size() < (1U << 20)) text += unit;
    const auto ids = tokenizer->Encode(text, Specials::kPlain);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(TextOf(*tokenizer, *ids), unit == "▁" ? std::string(text.size() / 3, ' ') : text);
  }
}

TEST(SentencePieceTokenizer, BadUtf8IsRefusedWithTheOffset) {
  EXPECT_EQ(Trained()->Encode("ab\xE2\x96", Specials::kPlain).status().message(),
            "text is not valid UTF-8: first bad byte at offset 2");
}

// --- A vocabulary of a few words, changed in one place at a time ---

std::string ByteSpelling(int byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned>(byte));
  return text.data();
}

constexpr TokenId kFirstByte = 20;

// Ids: 0 to 19 words, from 20 bytes.
Vocabulary Small(Marks marks) {
  Vocabulary vocabulary;
  vocabulary.tokens = {"<s>", "</s>", "▁", "a", "b", "ab", "▁a", "▁ab", "[x]", "é", "b▁a"};
  vocabulary.kinds.assign(vocabulary.tokens.size(), Kind::kNormal);
  vocabulary.kinds[0] = vocabulary.kinds[1] = Kind::kControl;
  vocabulary.kinds[8] = Kind::kUserDefined;
  while (vocabulary.tokens.size() < kFirstByte) {
    vocabulary.tokens.emplace_back();
    vocabulary.kinds.push_back(Kind::kUnused);
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(ByteSpelling(byte));
    vocabulary.kinds.push_back(Kind::kByte);
  }
  vocabulary.scores.assign(vocabulary.tokens.size(), 0.0f);
  const std::array<float, 11> scores = {0, 0, 0, 0, 0, -1, -2, -3, 0, 0, -9};
  std::ranges::copy(scores, vocabulary.scores.begin());
  vocabulary.bos = 0;
  vocabulary.eos = {1};
  vocabulary.space_marks = marks;
  return vocabulary;
}

Ids EncodeSmall(const Vocabulary& vocabulary, std::string_view text) {
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *(*tokenizer)->Encode(text, Specials::kControl) : Ids();
}

Ids EncodeSmall(Marks marks, std::string_view text) { return EncodeSmall(Small(marks), text); }

TEST(SentencePieceTokenizer, AMarkComesBeforeTheStretchesThatTheRuleNames) {
  const std::string text = "a<s>a[x]a";
  EXPECT_EQ(EncodeSmall({.prefix = Marks::Prefix::kEach}, text), (Ids{6, 0, 6, 8, 6}));
  EXPECT_EQ(EncodeSmall({.prefix = Marks::Prefix::kFirst}, text), (Ids{6, 0, 3, 8, 3}));
  EXPECT_EQ(EncodeSmall({.prefix = Marks::Prefix::kNone}, text), (Ids{3, 0, 3, 8, 3}));
  EXPECT_EQ(EncodeSmall({.prefix = Marks::Prefix::kFirst}, "<s>a"), (Ids{0, 3}));
  EXPECT_EQ(EncodeSmall({.prefix = Marks::Prefix::kEach}, ""), Ids());
}

TEST(SentencePieceTokenizer, ANormalizerPutsItsMarkEvenBeforeASpaceAndOthersDoNot) {
  EXPECT_EQ(EncodeSmall({.is_normalizer = true}, " a"), (Ids{2, 6}));
  EXPECT_EQ(EncodeSmall({.is_normalizer = false}, " a"), (Ids{6}));
  EXPECT_EQ(EncodeSmall({.is_normalizer = false}, "a<s> a"), (Ids{6, 0, 6}));
}

TEST(SentencePieceTokenizer, ATokenThatGoesOnOverASpaceIsMergedToo) {
  EXPECT_EQ(EncodeSmall({.prefix = Marks::Prefix::kNone}, "b a"), (Ids{10}));
}

TEST(SentencePieceTokenizer, WhatHasNoTokenBecomesItsBytesAndNoMergeCrossesIt) {
  EXPECT_EQ(EncodeSmall({.prefix = Marks::Prefix::kNone}, "a\nbéü"),
            (Ids{3, kFirstByte + 0x0A, 4, 9, kFirstByte + 0xC3, kFirstByte + 0xBC}));
  // Half of "xy" has no token of its own and takes part in the merge all the same.
  Vocabulary bare = Small({.prefix = Marks::Prefix::kNone});
  bare.tokens[11] = "ay";
  bare.kinds[11] = Kind::kNormal;
  EXPECT_EQ(EncodeSmall(bare, "bayy"), (Ids{4, 11, kFirstByte + 'y'}));
}

TEST(SentencePieceTokenizer, ATokenLookedForInNormalisedTextHasTheMarkToo) {
  Vocabulary vocabulary = Small({.prefix = Marks::Prefix::kEach});
  vocabulary.findings = {{.token = 0, .normalized = true}};
  // Found at the start and behind a space; right behind a letter the text has no mark.
  EXPECT_EQ(EncodeSmall(vocabulary, "<s>b <s>b"), (Ids{0, 4, 0, 4}));
  EXPECT_FALSE(std::ranges::count(EncodeSmall(vocabulary, "b<s>"), 0u));
  const auto tokenizer = MakeTokenizer(vocabulary);
  MarkedText marked;
  marked.parts = {
      {.text = "a ", .from_input = true}, {.text = "<s>"}, {.text = " <s>", .from_input = true}};
  const auto ids = (*tokenizer)->EncodeMarked(marked);
  EXPECT_EQ(std::ranges::count(*ids, 0u), 1);
}

TEST(SentencePieceTokenizer, TheBoundOfTokensIsMetByTheWorstTexts) {
  Vocabulary vocabulary = Small({});
  EXPECT_EQ((*MakeTokenizer(vocabulary))->MaxTokens(3), 4u);
  EXPECT_EQ(EncodeSmall(vocabulary, "\n\n\n").size(), 4u);
  vocabulary.tokens[8] = "x";
  EXPECT_EQ((*MakeTokenizer(vocabulary))->MaxTokens(3), 7u);
  EXPECT_EQ(EncodeSmall(vocabulary, "\nx\n").size(), 5u);
}

TEST(SentencePieceTokenizer, BytesOfTokensAreWhatTheyStandFor) {
  const auto tokenizer = MakeTokenizer(Small({}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Bytes(7), " ab");
  EXPECT_EQ((*tokenizer)->Bytes(kFirstByte + 0xE2), "\xE2");
  EXPECT_EQ((*tokenizer)->Bytes(0), "<s>");
  EXPECT_EQ(TextOf(**tokenizer, Ids{0, 7, 6, kFirstByte + 0xC3, kFirstByte + 0xBC}), "ab aü");
  EXPECT_TRUE((*tokenizer)->strips_first_space());
}

TEST(SentencePieceTokenizer, AVocabularyThatContradictsItselfIsRefusedByName) {
  const auto changed = [](const std::function<void(Vocabulary&)>& change) {
    Vocabulary vocabulary = Small({});
    change(vocabulary);
    const auto tokenizer = MakeTokenizer(vocabulary);
    return tokenizer.ok() ? "accepted" : std::string(tokenizer.status().message());
  };
  EXPECT_EQ(changed([](Vocabulary& v) { v.tokens[kFirstByte] = "<0x0>"; }),
            "token 20 is a byte token but is not spelt as one: '<0x0>'");
  EXPECT_EQ(changed([](Vocabulary& v) { v.kinds[kFirstByte + 7] = Kind::kControl; }),
            "byte 7 has no token; a SentencePiece vocabulary needs all 256, for unknown tokens are "
            "not built");
  EXPECT_EQ(changed([](Vocabulary& v) { v.kinds[2] = Kind::kControl; }),
            "the space mark (U+2581) has no token");
  EXPECT_EQ(changed([](Vocabulary& v) { v.tokens[4] = "a"; }),
            "token 4 repeats the spelling of token 3: 'a'");
  EXPECT_EQ(changed([](Vocabulary& v) { v.scores.pop_back(); }),
            "the vocabulary has 276 tokens and 275 scores");
  EXPECT_EQ(changed([](Vocabulary& v) { v.eos = {276}; }),
            "EOS token 276 is outside the vocabulary of 276");
  EXPECT_EQ(changed([](Vocabulary& v) {
              v.scores.clear();
              v.merges = {"a b", "b <s>"};
            }),
            "merge 1 ('b <s>'): '<s>' is not a normal token");
  EXPECT_EQ(changed([](Vocabulary& v) {
              v.tokens[8] = "a a";
              v.tokens[0] = "a▁a";
              v.findings = {{.token = 0, .normalized = true}, {.token = 8, .normalized = true}};
            }),
            "token 8 is the same in normalised text as token 0");
}

}  // namespace
}  // namespace pagoda::text
