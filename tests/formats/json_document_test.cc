#include "formats/json_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "tests/fixtures/gguf_writer.h"

namespace pagoda::formats {
namespace {

using testing::HasSubstr;

std::string Refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto document = JsonDocument::Parse(text, "some.json", limits);
  EXPECT_FALSE(document.ok()) << text;
  EXPECT_EQ(document.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(document.status().message());
}

TEST(JsonDocument, TextOfNoBytesIsRefusedByName) {
  EXPECT_EQ(Refusal({}), "some.json: is empty; JSON was expected");
  EXPECT_EQ(Refusal(""), "some.json: is empty; JSON was expected");
}

TEST(JsonDocument, GivesEveryValueByItsKindAndNothingByAnother) {
  const auto document = JsonDocument::Parse(
      R"({"n": null, "b": true, "i": -3, "u": 18446744073709551615, "d": 1e-5, "s": "ü\n"})",
      "kinds.json");
  ASSERT_TRUE(document.ok()) << document.status();
  const JsonValue root = (*document)->root();
  EXPECT_TRUE(root.Find("n")->is_null());
  EXPECT_EQ(root.Find("b")->AsBool(), true);
  EXPECT_EQ(root.Find("i")->AsInteger(), -3);
  EXPECT_EQ(root.Find("i")->AsUnsigned(), std::nullopt);
  EXPECT_EQ(root.Find("i")->AsNumber(), -3.0);
  EXPECT_EQ(root.Find("u")->AsUnsigned(), 18446744073709551615u);
  EXPECT_EQ(root.Find("u")->AsInteger(), std::nullopt);
  EXPECT_EQ(root.Find("d")->AsNumber(), 1e-5);
  EXPECT_EQ(root.Find("d")->AsInteger(), std::nullopt);
  EXPECT_EQ(root.Find("s")->AsString(), "ü\n");
  EXPECT_EQ(root.Find("s")->AsBool(), std::nullopt);
  EXPECT_FALSE(root.Find("absent").has_value());
  EXPECT_FALSE(root.Find("s")->Find("n").has_value());
  EXPECT_STREQ(root.KindName(), "an object");
}

TEST(JsonDocument, KeepsTheOrderOfElementsAndMembers) {
  const auto document = JsonDocument::Parse(R"({"z": [3, 1, 2], "a": {}})", "order.json");
  ASSERT_TRUE(document.ok()) << document.status();
  const auto members = (*document)->root().Members();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].key, "z");
  const auto elements = members[0].value.Elements();
  ASSERT_EQ(elements.size(), 3u);
  EXPECT_EQ(elements[0].AsInteger(), 3);
  EXPECT_EQ(elements[2].AsInteger(), 2);
  EXPECT_TRUE(members[1].value.Members().empty());
  EXPECT_TRUE(members[1].value.Elements().empty());
}

TEST(JsonDocument, OutlivesTheTextItWasMadeFrom) {
  std::string text = R"({"name": "a name that is long enough to have memory of its own"})";
  const auto document = JsonDocument::Parse(text, "moved.json");
  ASSERT_TRUE(document.ok());
  text.assign(text.size(), 'x');
  EXPECT_EQ((*document)->root().Find("name")->AsString(),
            "a name that is long enough to have memory of its own");
}

TEST(JsonDocument, WhatIsNotJsonIsRefusedWithItsName) {
  for (const std::string_view text : {"", " ", "{", R"({"a": 1,})", R"({"a": 01})", "nul",
                                      R"("\ud800")", "\"\xff\"", "[1] [2]", R"({"a": NaN})"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("some.json: ")) << text;
  }
}

TEST(JsonDocument, AKeyThatStandsTwiceIsRefusedAtAnyDepth) {
  EXPECT_THAT(Refusal(R"({"a": [{"b": 1, "c": 2, "b": 1}]})"),
              HasSubstr("the key 'b' stands twice in one object"));
  EXPECT_THAT(Refusal(R"({"a": 1, "\u0061": 2})"), HasSubstr("the key 'a' stands twice"));
  EXPECT_TRUE(JsonDocument::Parse(R"([{"a": 1}, {"a": 2}])", "two objects").ok());
}

TEST(JsonDocument, DepthAndSizeAreBounded) {
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  EXPECT_THAT(Refusal(deep), HasSubstr("too deep"));
  EXPECT_TRUE(JsonDocument::Parse(deep, "deep.json", {.max_depth = 80}).ok());
  EXPECT_THAT(Refusal("[1, 2, 3]", {.max_bytes = 8}),
              HasSubstr("is 9 bytes of JSON; the limit is 8"));
}

TEST(JsonDocument, OpensAFileAndNamesTheOneThatIsMissing) {
  const std::string path = fixtures::TemporaryPath("opened.json");
  ASSERT_TRUE(fixtures::WriteFile(path, std::as_bytes(std::span("[true]", 6))).ok());
  const auto document = JsonDocument::Open(path);
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ((*document)->name(), path);
  EXPECT_EQ((*document)->root().Elements()[0].AsBool(), true);
  const auto missing = JsonDocument::Open(path + ".not");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("opened.json.not"));
}

}  // namespace
}  // namespace pagoda::formats
