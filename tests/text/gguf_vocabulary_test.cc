#include "text/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fixtures/gguf_writer.h"
#include "text/tokenizer.h"

namespace pagoda::text {
namespace {

using fixtures::GgufWriter;
using Change = std::function<void(GgufWriter&)>;

struct Entries {
  std::string model = "gpt2";
  std::optional<std::string> pre = "smollm";
  std::vector<std::int32_t> kinds = {3, 1, 1, 1, 3};
  std::uint32_t eos = 0;
};

std::vector<std::byte> FileOf(const Entries& entries, const Change& also) {
  GgufWriter writer;
  writer.String("general.architecture", "llama");
  writer.String("tokenizer.ggml.model", entries.model);
  if (entries.pre.has_value()) writer.String("tokenizer.ggml.pre", *entries.pre);
  const std::vector<std::string> tokens = {"<s>", "a", "1", "aa", "<e>"};
  writer.Strings("tokenizer.ggml.tokens", tokens);
  writer.Integers("tokenizer.ggml.token_type", entries.kinds);
  const std::vector<std::string> merges = {"a a"};
  writer.Strings("tokenizer.ggml.merges", merges);
  writer.Unsigned("tokenizer.ggml.bos_token_id", 0);
  writer.Unsigned("tokenizer.ggml.eos_token_id", entries.eos);
  writer.Unsigned("tokenizer.ggml.padding_token_id", 0);
  writer.String("tokenizer.chat_template", "{{ x }}");
  also(writer);
  return writer.Bytes();
}

absl::StatusOr<Vocabulary> Read(
    const Entries& entries, const Change& also = [](GgufWriter&) {},
    std::optional<std::string_view> pre_tokenizer = std::nullopt) {
  const std::vector<std::byte> bytes = FileOf(entries, also);
  const auto file = formats::GgufFile::Parse(bytes, "test.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  return ReadGgufVocabulary(**file, pre_tokenizer);
}

std::string Refusal(const Entries& entries, const Change& also = [](GgufWriter&) {}) {
  const auto vocabulary = Read(entries, also);
  if (vocabulary.ok()) return "accepted";
  EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(vocabulary.status().message());
}

TEST(GgufVocabulary, WhatTheFileStatesIsRead) {
  const auto vocabulary = Read({}, [](GgufWriter& writer) {
    writer.Bool("tokenizer.ggml.add_bos_token", true);
    writer.Bool("tokenizer.ggml.add_space_prefix", false);
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->pre_tokenizer, "smollm");
  EXPECT_EQ(vocabulary->tokens[3], "aa");
  EXPECT_EQ(vocabulary->kinds[4], Vocabulary::TokenKind::kControl);
  EXPECT_EQ(vocabulary->merges, std::vector<std::string>{"a a"});
  EXPECT_EQ(vocabulary->bos, 0u);
  EXPECT_TRUE(vocabulary->adds_bos);
}

TEST(GgufVocabulary, B5_EveryIdThatEndsATurnIsAnEosOnce) {
  const auto vocabulary = Read({.eos = 4}, [](GgufWriter& writer) {
    writer.Unsigned("tokenizer.ggml.eot_token_id", 0);
    writer.Unsigned("tokenizer.ggml.eom_token_id", 4);
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->eos, (std::vector<base::TokenId>{4, 0}));
}

TEST(GgufVocabulary, G10_AMissingPreTokenizerIsRefusedUnlessTheCallerNamesOne) {
  EXPECT_EQ(Refusal({.pre = std::nullopt}),
            "the file does not say how text is split before merging (tokenizer.ggml.pre); name the "
            "model's pre-tokenizer to load it");
  const auto named = Read({.pre = std::nullopt}, [](GgufWriter&) {}, "gpt-2");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->pre_tokenizer, "gpt-2");
}

TEST(GgufVocabulary, G10_AnUnknownPreTokenizerIsRefusedUnlessTheCallerNamesOne) {
  const std::vector<std::byte> bytes = FileOf({.pre = "default"}, [](GgufWriter&) {});
  const auto file = formats::GgufFile::Parse(bytes, "test.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(Tokenizer::FromGguf(**file).status().message(),
            "pre-tokenizer 'default' is not known; known are gpt-2, llama-bpe, qwen2, smollm");
  EXPECT_EQ(Tokenizer::FromGguf(**file, "other").status().message(),
            "pre-tokenizer 'other' is not known; known are gpt-2, llama-bpe, qwen2, smollm");
  EXPECT_TRUE(Tokenizer::FromGguf(**file, "smollm").ok());
}

TEST(GgufVocabulary, WhatARuleOfAModelImpliesIsNotLostForWantOfAnEntry) {
  const auto llama = Read({.pre = "llama-bpe"}, [](GgufWriter&) {}, std::nullopt);
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_TRUE(llama->ignores_merges);
  EXPECT_TRUE(llama->adds_bos);
  EXPECT_EQ(llama->normalizer, Vocabulary::Normalizer::kNone);
  const auto qwen = Read({.pre = "qwen2"}, [](GgufWriter&) {}, std::nullopt);
  ASSERT_TRUE(qwen.ok()) << qwen.status();
  EXPECT_FALSE(qwen->ignores_merges);
  EXPECT_FALSE(qwen->adds_bos);
  EXPECT_EQ(qwen->normalizer, Vocabulary::Normalizer::kNfc);
}

TEST(GgufVocabulary, AnotherModelIsRefused) {
  EXPECT_EQ(Refusal({.model = "t5"}),
            "tokenizer.ggml.model is 't5'; built are 'gpt2' (byte-level BPE) and 'llama' "
            "(SentencePiece BPE)");
}

TEST(GgufVocabulary, AnEntryThatWouldChangeIdsIsRefusedAndNotIgnored) {
  for (const std::string name : {"add_eos_token", "add_sep_token", "add_space_prefix"}) {
    const std::string key = "tokenizer.ggml." + name;
    EXPECT_EQ(Refusal({}, [&](GgufWriter& writer) { writer.Bool(key, true); }),
              key + " is true; only false is built for this vocabulary");
  }
  EXPECT_EQ(
      Refusal({}, [](GgufWriter& w) { w.String("tokenizer.ggml.precompiled_charsmap", "x"); }),
      "the file has an entry that this tokenizer does not know and so cannot honour: "
      "tokenizer.ggml.precompiled_charsmap");
}

TEST(GgufVocabulary, AKindOutOfRangeIsRefused) {
  EXPECT_EQ(Refusal({.kinds = {3, 1, 7, 1, 3}}),
            "tokenizer.ggml.token_type[2] is 7; expected 1 to 6");
  EXPECT_NE(Refusal({.kinds = {3, 1, -1, 1, 3}}), "accepted");
}

// --- SentencePiece ---

const Change kScores = [](GgufWriter& writer) {
  const std::vector<float> scores = {0, -1, -2, -3.5F, 0};
  writer.Floats("tokenizer.ggml.scores", scores);
};

TEST(GgufVocabulary, ASentencePieceVocabularyHasScoresAndSpaceMarks) {
  const auto vocabulary = Read({.model = "llama", .pre = "default"}, kScores);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->scores, (std::vector<float>{0, -1, -2, -3.5F, 0}));
  EXPECT_TRUE(vocabulary->merges.empty());
  ASSERT_TRUE(vocabulary->space_marks.has_value());
  EXPECT_EQ(vocabulary->space_marks->prefix, SpaceMarks::Prefix::kEach);
  EXPECT_TRUE(vocabulary->space_marks->strips_first_space);
  EXPECT_TRUE(vocabulary->adds_bos) << "such models begin a text with BOS unless the file says no";
  EXPECT_FALSE(Read({})->space_marks.has_value());
}

TEST(GgufVocabulary, FlagsOfASentencePieceVocabularyAreHonoured) {
  const auto vocabulary = Read({.model = "llama", .pre = std::nullopt}, [](GgufWriter& writer) {
    kScores(writer);
    writer.Bool("tokenizer.ggml.add_bos_token", false);
    writer.Bool("tokenizer.ggml.add_space_prefix", false);
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_FALSE(vocabulary->adds_bos);
  EXPECT_EQ(vocabulary->space_marks->prefix, SpaceMarks::Prefix::kNone);
  EXPECT_FALSE(vocabulary->space_marks->strips_first_space);
}

TEST(GgufVocabulary, WhatASentencePieceVocabularyHereCannotDoIsRefused) {
  EXPECT_EQ(Refusal({.model = "llama", .pre = "llama-bpe"}, kScores),
            "pre-tokenizer 'llama-bpe' does not go with a SentencePiece vocabulary; known is "
            "default");
  EXPECT_NE(Refusal({.model = "llama", .pre = "default"}), "accepted") << "no scores";
  EXPECT_EQ(Refusal({.model = "llama", .pre = "default"},
                    [](GgufWriter& writer) {
                      writer.Floats("tokenizer.ggml.scores", std::vector<float>{});
                    }),
            "tokenizer.ggml.scores has 0 entries for 5 tokens");
  EXPECT_EQ(Refusal({.model = "llama", .pre = "default"},
                    [](GgufWriter& writer) {
                      kScores(writer);
                      writer.Bool("tokenizer.ggml.remove_extra_whitespaces", true);
                    }),
            "tokenizer.ggml.remove_extra_whitespaces is true; only false is built for this "
            "vocabulary");
}

}  // namespace
}  // namespace pagoda::text
