#include "server/core/text_calls.h"

#include <gtest/gtest.h>

#include "base/field_error.h"
#include "tests/server/world.h"

namespace pagoda::server {
namespace {

TEST(TextCalls, TokenizeGivesIdsOrTheError) {
  const ServedModel model = World::MakeModel({});
  absl::StatusOr<std::vector<base::TokenId>> got;
  const auto keep = [&got](absl::StatusOr<std::vector<base::TokenId>> tokens, const std::string&) {
    got = std::move(tokens);
  };
  MakeTokenizeCall(TextPrompt{"cab", false, {}}, model, keep)->RunText();
  EXPECT_EQ(*got, (std::vector<base::TokenId>{2, 0, 1}));
  MakeTokenizeCall(TextPrompt{"?", false, {}}, model, keep)->RunText();
  EXPECT_EQ(base::FieldOf(got.status()), "text");
}

TEST(TextCalls, DetokenizeGivesTextOrTheError) {
  const ServedModel model = World::MakeModel({});
  absl::StatusOr<std::string> got;
  const auto keep = [&got](absl::StatusOr<std::string> text) { got = std::move(text); };
  MakeDetokenizeCall({2, 0, 1}, true, model, keep)->RunText();
  EXPECT_EQ(*got, "cab");
  MakeDetokenizeCall({99}, true, model, keep)->RunText();
  EXPECT_EQ(base::FieldOf(got.status()), "token_ids");
}

}  // namespace
}  // namespace pagoda::server
