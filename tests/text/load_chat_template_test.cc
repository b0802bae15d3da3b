#include "text/load_chat_template.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/piece_tokenizer.h"

namespace pagoda::text {
namespace {

// The message of the refusal; empty where the template is taken.
std::string Refusal(std::string_view source) {
  const fakes::PieceTokenizer tokenizer({"a"});
  return std::string(LoadChatTemplate(source, tokenizer).status().message());
}

constexpr std::string_view kEndless =
    "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";

TEST(LoadChatTemplate, G14_WhatFailsAtEveryConversationIsFoundBeforeACallerFindsIt) {
  EXPECT_NE(
      Refusal("a\n" + std::string(kEndless)).find("line 2: the rendering passes kMaxWorkingBytes"),
      std::string::npos);
  EXPECT_NE(Refusal("{{ bos_token + 'a' }}").find("line 1: 'bos_token' is undefined"),
            std::string::npos);
  EXPECT_NE(Refusal("{{ strftime_now('%Q') }}").find("is not supported"), std::string::npos);
  EXPECT_NE(Refusal("{{ messages | groupby('role') }}").find("the filter 'groupby'"),
            std::string::npos);
}

TEST(LoadChatTemplate, G14_AFaultThatOnlyASystemOrAnAssistantMessageShowsIsFoundToo) {
  for (const char* const role : {"system", "assistant"}) {
    const std::string source = "{% for m in messages %}{% if m.role == '" + std::string(role) +
                               "' %}{{ 'a' + missing }}{% endif %}{% endfor %}";
    EXPECT_NE(Refusal(source).find("line 1: 'missing' is undefined"), std::string::npos) << role;
  }
}

TEST(LoadChatTemplate, ATemplateThatRefusesAConversationInItsOwnWordsIsTaken) {
  EXPECT_EQ(Refusal("{{ raise_exception('no system message, please') }}"), "");
  EXPECT_EQ(Refusal("{% for m in messages %}{{ m.content }}{% endfor %}"), "");
  EXPECT_EQ(Refusal("{{ strftime_now('%d %b %Y') }}"), "");
}

class MarkingTokenizer final : public Tokenizer {
 public:
  absl::StatusOr<std::vector<base::TokenId>> Encode(std::string_view, Specials) const override {
    return std::vector<base::TokenId>();
  }
  absl::StatusOr<std::vector<base::TokenId>> EncodeMarked(const MarkedText&) const override {
    return std::vector<base::TokenId>();
  }
  std::string_view Bytes(base::TokenId id) const override { return id == 1 ? "<s>" : "</s>"; }
  bool IsControl(base::TokenId) const override { return true; }
  std::uint32_t vocabulary_size() const override { return 3; }
  std::vector<base::TokenId> eos_tokens() const override { return {2, 1}; }
  std::optional<base::TokenId> bos_token() const override { return 1; }
  bool adds_bos() const override { return false; }
};

TEST(LoadChatTemplate, TheTrialHasTheModelsOwnBosAndFirstEos) {
  const MarkingTokenizer tokenizer;
  EXPECT_EQ(OptionsOf(tokenizer).bos_token, "<s>");
  EXPECT_EQ(OptionsOf(tokenizer).eos_token, "</s>");
  EXPECT_TRUE(LoadChatTemplate("{{ bos_token + eos_token }}", tokenizer).ok());
}

}  // namespace
}  // namespace pagoda::text
