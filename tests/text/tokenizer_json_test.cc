#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_bpe_tokenizer.h"
#include "text/model_text.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Ids = std::vector<TokenId>;
using Json = nlohmann::ordered_json;
using Specials = Tokenizer::Specials;

const std::string kGoldens = PAGODA_SOURCE_DIR "/tests/oracle/goldens/";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// --- Against the oracle ---

class PublishedRule : public testing::TestWithParam<std::string> {};

TEST_P(PublishedRule, AFileTrainedWithItGivesTheOraclesIds) {
  const auto text = LoadModelText(kGoldens + "tokenizer_json/" + GetParam(), {});
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string golden = ReadFile(kGoldens + "tokenizer_json_" + GetParam() + ".bin");
  std::size_t at = 0;
  const auto number = [&](std::size_t bytes) {
    std::uint32_t value = 0;
    EXPECT_LE(at + bytes, golden.size());
    std::memcpy(&value, golden.data() + at, bytes);
    at += bytes;
    return value;
  };
  int count = 0;
  for (; at < golden.size(); ++count) {
    const bool plain = number(1) == 0;
    const std::size_t length = number(4);
    const std::string input = golden.substr(at, length);
    at += length;
    Ids wanted(number(4));
    for (TokenId& id : wanted) id = number(2);
    const auto ids = text->tokenizer->Encode(input, plain ? Specials::kPlain : Specials::kControl);
    ASSERT_TRUE(ids.ok()) << ids.status();
    ASSERT_EQ(*ids, wanted) << (plain ? "plain: " : "with control tokens: ") << input;
  }
  EXPECT_EQ(count, 600);
}

INSTANTIATE_TEST_SUITE_P(Rules, PublishedRule,
                         testing::Values("gpt-2", "llama-bpe", "qwen2", "smollm"),
                         [](const auto& named) {
                           std::string name = named.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(TokenizerJson, WhatAddsBosIsSeenInThePostProcessor) {
  const auto llama = LoadModelText(kGoldens + "tokenizer_json/llama-bpe", {});
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_TRUE(llama->tokenizer->adds_bos());
  EXPECT_EQ(llama->tokenizer->bos_token(), 0u);
  const auto qwen = LoadModelText(kGoldens + "tokenizer_json/qwen2", {});
  ASSERT_TRUE(qwen.ok()) << qwen.status();
  EXPECT_FALSE(qwen->tokenizer->adds_bos());
}

// --- A file of two letters, changed in one place at a time ---

Json Small() {
  return Json::parse(R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<s>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": {"type": "ByteLevel", "trim_offsets": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false,
              "continuing_subword_prefix": null, "end_of_word_suffix": "", "fuse_unk": false,
              "ignore_merges": false, "vocab": {"a": 0, "b": 1, "ab": 2, "bb": 3},
              "merges": ["a b"]}})");
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Make(const Json& json) {
  const auto document = formats::JsonDocument::Parse(json.dump(), "tokenizer.json");
  if (!document.ok()) return document.status();
  const auto vocabulary = ReadTokenizerJson(**document);
  if (!vocabulary.ok()) return vocabulary.status();
  return MakeByteBpeTokenizer(*vocabulary);
}

template <typename Change>
Ids EncodeChanged(Change change, std::string_view text, Specials specials = Specials::kControl) {
  Json json = Small();
  change(json);
  const auto tokenizer = Make(json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *(*tokenizer)->Encode(text, specials) : Ids();
}

template <typename Change>
std::string RefusalOf(Change change) {
  Json json = Small();
  change(json);
  const auto tokenizer = Make(json);
  if (tokenizer.ok()) return "accepted";
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tokenizer.status().message());
}

TEST(TokenizerJson, MergesMayBePairsAndTokensMayGoBeforeMerges) {
  EXPECT_EQ(EncodeChanged([](Json&) {}, "abb<s>bb"), (Ids{2, 1, 4, 1, 1}));
  EXPECT_EQ(
      EncodeChanged([](Json& j) { j["model"]["merges"][0] = Json::array({"a", "b"}); }, "abb"),
      (Ids{2, 1}));
  EXPECT_EQ(EncodeChanged([](Json& j) { j["model"]["ignore_merges"] = true; }, "bb"), Ids{3});
  EXPECT_EQ(EncodeChanged([](Json& j) { j["model"].erase("type"); }, "ab"), Ids{2});
}

TEST(TokenizerJson, AnAddedTokenTakesTheWhiteSpaceItSays) {
  const auto with = [](const char* side) {
    return [side](Json& j) {
      j["added_tokens"][0][side] = true;
      j["model"]["vocab"]["\u0120"] = 5;  // a space
    };
  };
  EXPECT_EQ(EncodeChanged(with("lstrip"), "a  <s> b"), (Ids{0, 4, 5, 1}));
  EXPECT_EQ(EncodeChanged(with("rstrip"), "a <s>  b"), (Ids{0, 5, 4, 1}));
  EXPECT_EQ(EncodeChanged(with("lstrip"), "  <s> <s>"), (Ids{4, 4}));
}

TEST(TokenizerJson, TokensOfNormalisedTextAreLookedForAfterTheOthers) {
  const auto change = [](Json& j) {
    j["added_tokens"].push_back(
        {{"id", 6}, {"content", "b<s"}, {"special", false}, {"normalized", true}});
    j["normalizer"] = {{"type", "NFC"}};
  };
  EXPECT_EQ(EncodeChanged(change, "ab<s>"), (Ids{2, 4}));
  EXPECT_EQ(EncodeChanged(change, "ab<sb"), (Ids{0, 6, 1}));
}

TEST(TokenizerJson, AnIdWithoutATokenIsLeftEmpty) {
  Json json = Small();
  json["added_tokens"][0]["id"] = 9;
  const auto tokenizer = Make(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 10u);
  EXPECT_EQ((*tokenizer)->Bytes(7), "");
}

// A change of one place may leave a file that is still one; it must never end the process.
TEST(TokenizerJson, AFileDamagedAnywhereIsReadOrRefused) {
  constexpr std::uint64_t kSeed = 20261129;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  const std::string whole = Small().dump();
  constexpr std::string_view kBytes = "\"{}[],:0123456789abnulltrue<s>\\ \xC4\x80";
  int num_read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    const std::size_t at = random() % text.size();
    switch (random() % 3) {
      case 0:
        text[at] = kBytes[random() % kBytes.size()];
        break;
      case 1:
        text.erase(at, 1 + random() % 12);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), 1 + random() % 40));
        break;
    }
    const auto document = formats::JsonDocument::Parse(text, "tokenizer.json");
    if (!document.ok()) continue;
    const auto vocabulary = ReadTokenizerJson(**document);
    if (!vocabulary.ok()) continue;
    const auto tokenizer = MakeByteBpeTokenizer(*vocabulary);
    if (!tokenizer.ok()) continue;
    ++num_read;
    EXPECT_TRUE((*tokenizer)->Encode("abb <s>a", Specials::kControl).ok()) << text;
  }
  EXPECT_GT(num_read, 100);
}

TEST(TokenizerJson, G10_WhatIsNotBuiltIsRefusedByName) {
  const auto refused = [](auto change, const char* words) {
    const std::string refusal = RefusalOf(change);
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal << "\nwanted: " << words;
    EXPECT_EQ(refusal.find("tokenizer.json: "), 0u) << refusal;
  };
  refused([](Json& j) { j["model"]["type"] = "Unigram"; }, "model.type: 'Unigram'");
  refused([](Json& j) { j["model"]["byte_fallback"] = true; },
          "pre_tokenizer: 'ByteLevel' is not built; known with byte_fallback is Metaspace");
  refused([](Json& j) { j["model"]["dropout"] = 0.1; }, "model.dropout");
  refused([](Json& j) { j["model"]["unk_token"] = "a"; }, "model.unk_token");
  refused([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix");
  refused([](Json& j) { j["model"]["new"] = 1; }, "model: the entry 'new' is not known");
  refused([](Json& j) { j["model"]["vocab"]["c"] = 2; }, "id 2 is given to 'ab' and to 'c'");
  refused([](Json& j) { j["model"]["vocab"]["c"] = -1; }, "expected a token id");
  refused([](Json& j) { j["model"]["vocab"]["c"] = 4'000'000'000; }, "past the bound");
  refused([](Json& j) { j["model"]["merges"][0] = Json::array({"a", "b", "c"}); },
          "merge 0 is neither");
  refused([](Json& j) { j["normalizer"] = {{"type", "NFKC"}}; }, "normalizer: 'NFKC'");
  refused([](Json& j) { j["pre_tokenizer"] = nullptr; }, "pre_tokenizer: null");
  refused([](Json& j) { j["pre_tokenizer"]["add_prefix_space"] = true; }, "add_prefix_space true");
  refused([](Json& j) { j["pre_tokenizer"]["type"] = "Metaspace"; }, "the step 'Metaspace'");
  refused([](Json& j) { j["pre_tokenizer"]["use_regex"] = false; }, "the steps (ByteLevel)");
  refused(
      [](Json& j) {
        j["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
          {"type": "Split", "pattern": {"Regex": "\\d+"}, "behavior": "Isolated", "invert": false},
          {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
      },
      "the steps (Split at '\\d+', ByteLevel) are none of the rules built here");
  refused([](Json& j) { j["post_processor"] = {{"type", "BertProcessing"}}; }, "'BertProcessing'");
  refused(
      [](Json& j) {
        j["post_processor"] = Json::parse(R"({"type": "TemplateProcessing", "single": [
          {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 0}}],
          "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}})");
      },
      "none after it");
  refused([](Json& j) { j["decoder"] = {{"type", "Fuse"}}; }, "decoder: 'Fuse'");
  refused([](Json& j) { j["added_tokens"][0]["single_word"] = true; }, "single_word true");
  refused([](Json& j) { j["added_tokens"][0]["id"] = 1; }, "its id 1 belongs to 'b'");
  refused([](Json& j) { j["extra"] = 1; }, "the entry 'extra' is not known");
  refused([](Json& j) { j["decoder"] = nullptr; }, "decoder: null; replies would be");
  refused([](Json& j) { j.erase("decoder"); }, "decoder: is absent");
}

}  // namespace
}  // namespace pagoda::text
