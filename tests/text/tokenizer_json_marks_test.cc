#include "text/tokenizer_json_marks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/text/sentence_piece_golden.h"
#include "text/make_tokenizer.h"
#include "text/tokenizer_json.h"

namespace pagoda::text {
namespace {

using Json = nlohmann::ordered_json;
using Prefix = SpaceMarks::Prefix;

const std::string kGoldens = PAGODA_SOURCE_DIR "/tests/oracle/goldens/sentence_piece/";

Json Read(const std::string& name) {
  std::ifstream file(kGoldens + name);
  return Json::parse(file);
}

absl::StatusOr<Vocabulary> VocabularyOf(const Json& json) {
  const auto document = formats::JsonDocument::Parse(json.dump(), "tokenizer.json");
  if (!document.ok()) return document.status();
  return ReadTokenizerJson(**document);
}

class PublishedForm : public testing::TestWithParam<std::string> {};

TEST_P(PublishedForm, GivesTheOraclesIdsAndText) {
  Json json = Read("tokenizer.json");
  const Json changes = Read("forms.json")[GetParam()];
  for (const auto& [key, value] : changes.items()) {
    (key == "ignore_merges" ? json["model"] : json)[key] = value;
  }
  const auto vocabulary = VocabularyOf(json);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const auto tokenizer = MakeTokenizer(*vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  CompareWithSentencePieceGolden(**tokenizer, GetParam());
  EXPECT_TRUE((*tokenizer)->adds_bos());
}

INSTANTIATE_TEST_SUITE_P(Forms, PublishedForm,
                         testing::Values("prepend", "prepend-normalized", "first", "always",
                                         "never", "replace-only"),
                         [](const auto& named) {
                           std::string name = named.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// --- The entries alone, changed in one place at a time ---

Json Entries() {
  return Json::parse(R"({
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "pre_tokenizer": null,
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})");
}

Json Metaspace(const std::string& scheme) {
  return {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", false}};
}

absl::StatusOr<SpaceMarks> MarksOf(const std::function<void(Json&)>& change) {
  Json json = Entries();
  change(json);
  const auto document = formats::JsonDocument::Parse(json.dump(), "tokenizer.json");
  if (!document.ok()) return document.status();
  return ReadSpaceMarks((*document)->root());
}

std::string Refusal(const std::function<void(Json&)>& change) {
  const auto marks = MarksOf(change);
  if (marks.ok()) return "accepted";
  EXPECT_EQ(marks.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(marks.status().message());
}

TEST(TokenizerJsonMarks, EachKnownFormIsRead) {
  const auto legacy = MarksOf([](Json&) {});
  ASSERT_TRUE(legacy.ok()) << legacy.status();
  EXPECT_EQ(legacy->prefix, Prefix::kEach);
  EXPECT_TRUE(legacy->is_normalizer);
  EXPECT_TRUE(legacy->strips_first_space);
  const auto first = MarksOf([](Json& j) {
    j["normalizer"] = nullptr;
    j["pre_tokenizer"] = Metaspace("first");
    j["decoder"]["decoders"].erase(3);
  });
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->prefix, Prefix::kFirst);
  EXPECT_FALSE(first->is_normalizer);
  EXPECT_FALSE(first->strips_first_space);
}

TEST(TokenizerJsonMarks, AMetaspaceWithoutASchemePutsAMarkBeforeEachStretch) {
  const auto marks = MarksOf([](Json& j) {
    j["normalizer"] = nullptr;
    j["pre_tokenizer"] = Metaspace("");
    j["pre_tokenizer"].erase("prepend_scheme");
    j["pre_tokenizer"]["add_prefix_space"] = true;
  });
  ASSERT_TRUE(marks.ok()) << marks.status();
  EXPECT_EQ(marks->prefix, Prefix::kEach);
}

TEST(TokenizerJsonMarks, OtherStepsAreRefusedWithWhatWasFound) {
  EXPECT_EQ(Refusal([](Json& j) { j["normalizer"]["normalizers"].erase(1); }),
            "normalizer: the steps (Prepend '▁') are not built; known with byte_fallback are null, "
            "(Prepend '▁', Replace ' ' by '▁') and (Replace ' ' by '▁')");
  EXPECT_EQ(
      Refusal([](Json& j) { j["normalizer"]["normalizers"][1]["pattern"] = {{"Regex", " +"}}; }),
      "normalizer: Replace without a String is not built");
  EXPECT_EQ(Refusal([](Json& j) { j["normalizer"]["normalizers"][0] = {{"type", "NFKC"}}; }),
            "normalizer: the steps (NFKC, Replace ' ' by '▁') are not built; known with "
            "byte_fallback are null, (Prepend '▁', Replace ' ' by '▁') and (Replace ' ' by '▁')");
  EXPECT_EQ(Refusal([](Json& j) { j["decoder"] = nullptr; }),
            "decoder: null; replies would be the spelled tokens with spaces between");
  EXPECT_EQ(
      Refusal([](Json& j) { j["decoder"]["decoders"][3]["start"] = 2; }),
      "decoder: the steps (Replace '▁' by ' ', ByteFallback, Fuse, Strip ' ' 2 0) are not "
      "built; known with byte_fallback are (Replace '▁' by ' ', ByteFallback, Fuse, Strip ' ' "
      "1 0), or without the last");
  EXPECT_EQ(Refusal([](Json& j) { j["decoder"]["decoders"][3]["start"] = "1"; }),
            "decoder: Strip: 'start' is no count");
  EXPECT_EQ(Refusal([](Json& j) { j["decoder"]["decoders"][2]["x"] = 1; }),
            "decoder: the entry 'x' is not known");
}

TEST(TokenizerJsonMarks, AMetaspaceThatIsNotKnownIsRefused) {
  const auto changed = [](const std::function<void(Json&)>& change) {
    return Refusal([&](Json& j) {
      j["normalizer"] = nullptr;
      j["pre_tokenizer"] = Metaspace("first");
      change(j["pre_tokenizer"]);
    });
  };
  EXPECT_EQ(changed([](Json&) {}), "accepted");
  EXPECT_EQ(changed([](Json& j) { j.erase("split"); }),
            "pre_tokenizer: Metaspace with split true is not built");
  EXPECT_EQ(changed([](Json& j) { j["replacement"] = "_"; }),
            "pre_tokenizer: Metaspace with replacement '_' is not built; known is U+2581");
  EXPECT_EQ(changed([](Json& j) { j["prepend_scheme"] = "last"; }),
            "pre_tokenizer: Metaspace with prepend_scheme 'last' is not built; known are always, "
            "first, never");
  EXPECT_EQ(changed([](Json& j) { j["add_prefix_space"] = false; }),
            "pre_tokenizer: Metaspace has add_prefix_space false and prepend_scheme 'first'");
  EXPECT_EQ(changed([](Json& j) { j["type"] = "Whitespace"; }),
            "pre_tokenizer: 'Whitespace' is not built; known with byte_fallback is Metaspace");
}

TEST(TokenizerJsonMarks, SpacesAreMarkedOnceAndOnlyOnce) {
  const std::string both_or_neither =
      "pre_tokenizer: with byte_fallback, spaces are marked either by a normalizer or by a "
      "Metaspace pre-tokenizer; found both or neither";
  EXPECT_EQ(Refusal([](Json& j) { j["normalizer"] = nullptr; }), both_or_neither);
  EXPECT_EQ(Refusal([](Json& j) { j["pre_tokenizer"] = Metaspace("first"); }), both_or_neither);
}

}  // namespace
}  // namespace pagoda::text
