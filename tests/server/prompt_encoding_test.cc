#include "server/core/prompt_encoding.h"

#include <gtest/gtest.h>

#include "base/field_error.h"
#include "server/core/refusal.h"
#include "tests/fakes/piece_tokenizer.h"

namespace pagoda::server {
namespace {

using Tokens = std::vector<base::TokenId>;

// Says about BOS what a test wants.
class BosTokenizer final : public text::Tokenizer {
 public:
  BosTokenizer(std::optional<base::TokenId> bos, bool adds) : bos_(bos), adds_(adds) {}
  absl::StatusOr<Tokens> Encode(std::string_view text, Specials specials) const override {
    return pieces_.Encode(text, specials);
  }
  absl::StatusOr<Tokens> EncodeMarked(const text::MarkedText& text) const override {
    return pieces_.EncodeMarked(text);
  }
  std::string_view Bytes(base::TokenId id) const override { return pieces_.Bytes(id); }
  bool IsControl(base::TokenId id) const override { return pieces_.IsControl(id); }
  std::uint32_t vocabulary_size() const override { return pieces_.vocabulary_size(); }
  Tokens eos_tokens() const override { return {}; }
  std::optional<base::TokenId> bos_token() const override { return bos_; }
  bool adds_bos() const override { return adds_; }

 private:
  fakes::PieceTokenizer pieces_{{"<s>", "<", "s", ">", "a", "\xC3"}, {0}};
  std::optional<base::TokenId> bos_;
  bool adds_;
};

// Spells the first word of a text with a space before it, which is no part of the text.
class SpaceTokenizer final : public text::Tokenizer {
 public:
  absl::StatusOr<Tokens> Encode(std::string_view text, Specials specials) const override {
    return pieces_.Encode(" " + std::string(text), specials);
  }
  absl::StatusOr<Tokens> EncodeMarked(const text::MarkedText& text) const override {
    return Encode(text.Joined(), Specials::kControl);
  }
  std::string_view Bytes(base::TokenId id) const override { return pieces_.Bytes(id); }
  bool IsControl(base::TokenId id) const override { return pieces_.IsControl(id); }
  std::uint32_t vocabulary_size() const override { return pieces_.vocabulary_size(); }
  Tokens eos_tokens() const override { return {}; }
  std::optional<base::TokenId> bos_token() const override { return 0; }
  bool adds_bos() const override { return true; }
  bool strips_first_space() const override { return true; }
  std::size_t MaxTokens(std::size_t num_bytes) const override { return num_bytes + 1; }

 private:
  fakes::PieceTokenizer pieces_{{"<s>", " ", " Daily", " new", "s", " is"}, {0}};
};

// Puts the first message between two words of its own.
class FakeTemplate final : public text::ChatTemplate {
 public:
  explicit FakeTemplate(std::string before) : before_(std::move(before)) {}
  absl::StatusOr<text::MarkedText> Render(std::span<const text::ChatMessage> messages,
                                          const text::ChatTemplateOptions&) const override {
    if (messages[0].role == "tool") return absl::FailedPreconditionError("line 1: a limit");
    if (messages[0].role != "user") return absl::InvalidArgumentError("roles must alternate");
    return text::MarkedText{{{before_, false}, {messages[0].content, true}}};
  }

 private:
  std::string before_;
};

ServedModel Model(std::optional<base::TokenId> bos, bool adds,
                  std::optional<std::string> chat = std::nullopt) {
  ServedModel model;
  model.tokenizer = std::make_unique<BosTokenizer>(bos, adds);
  if (chat.has_value()) model.chat_template = std::make_unique<FakeTemplate>(*chat);
  return model;
}

Tokens Raw(const ServedModel& model, std::string text, bool specials, std::optional<bool> add) {
  return EncodePrompt(TextPrompt{std::move(text), specials, add}, model)->tokens;
}

// Row G13: never two BOS.
TEST(PromptEncoding, ARawTextGetsBosAsAskedAndNeverTwice) {
  const ServedModel adds = Model(0, true);
  EXPECT_EQ(Raw(adds, "a", false, std::nullopt), (Tokens{0, 4}));
  EXPECT_EQ(Raw(adds, "a", false, false), (Tokens{4}));
  EXPECT_EQ(Raw(adds, "<s>a", true, std::nullopt), (Tokens{0, 4}));
  EXPECT_EQ(Raw(adds, "<s>a", true, true), (Tokens{0, 4}));
  EXPECT_EQ(Raw(adds, "<s>a", false, std::nullopt), (Tokens{0, 1, 2, 3, 4}));
  const ServedModel plain = Model(0, false);
  EXPECT_EQ(Raw(plain, "a", false, std::nullopt), (Tokens{4}));
  EXPECT_EQ(Raw(plain, "a", false, true), (Tokens{0, 4}));
  const auto refused =
      EncodePrompt(TextPrompt{"a", false, true}, Model(std::nullopt, false)).status();
  EXPECT_EQ(base::FieldOf(refused), "add_bos");
}

TEST(PromptEncoding, AChatGetsExactlyOneBosWhoeverWritesIt) {
  const ChatPrompt chat{{{"user", "a"}}, true};
  EXPECT_EQ(EncodePrompt(chat, Model(0, true, "<s>"))->tokens, (Tokens{0, 4}));
  EXPECT_EQ(EncodePrompt(chat, Model(0, true, ""))->tokens, (Tokens{0, 4}));
  EXPECT_EQ(EncodePrompt(chat, Model(0, false, ""))->tokens, (Tokens{4}));
}

TEST(PromptEncoding, WhatACallerWritesInAChatIsNeverAControlToken) {
  const ChatPrompt chat{{{"user", "<s>"}}, true};
  const auto encoded = EncodePrompt(chat, Model(0, false, "<s>"));
  EXPECT_EQ(encoded->tokens, (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(encoded->rendered_text, "<s><s>");
}

// Row G14: the template's own words reach the caller.
TEST(PromptEncoding, ErrorsNameTheFieldAndKeepTheWords) {
  const auto raised =
      EncodePrompt(ChatPrompt{{{"system", "a"}}, true}, Model(0, false, "")).status();
  EXPECT_EQ(base::FieldOf(raised), "messages");
  EXPECT_NE(raised.message().find("roles must alternate"), absl::string_view::npos);
  const auto failed = EncodePrompt(ChatPrompt{{{"tool", "a"}}, true}, Model(0, false, "")).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::ReasonOf(failed), "CHAT_TEMPLATE_FAILED");
  EXPECT_EQ(failed.message(), "the model is at fault, not the request: line 1: a limit");
  EXPECT_EQ(base::FieldOf(EncodePrompt(ChatPrompt{}, Model(0, false, "")).status()), "messages");
  EXPECT_EQ(base::FieldOf(EncodePrompt(TextPrompt{"?", false, {}}, Model(0, false)).status()),
            "text");
  EXPECT_EQ(
      base::ReasonOf(EncodePrompt(ChatPrompt{{{"user", "a"}}, true}, Model(0, false)).status()),
      reason::kNoChatTemplate);
}

TEST(PromptEncoding, TheGatesBoundIsNeverBelowTheTokens) {
  const BosTokenizer tokenizer(0, true);
  EXPECT_EQ(MaxPromptTokens(TextPrompt{"aaa", false, true}, tokenizer, 100), 4);
  EXPECT_EQ(MaxPromptTokens(Tokens{1, 2, 3}, tokenizer, 100), 3);
  EXPECT_EQ(MaxPromptTokens(ChatPrompt{}, tokenizer, 100), 100);
  EXPECT_EQ(MaxPromptTokens(TextPrompt{std::string(500, 'a'), false, {}}, tokenizer, 100), 100);
  const SpaceTokenizer spaced;
  EXPECT_EQ(MaxPromptTokens(TextPrompt{"aaa", false, true}, spaced, 100), 5);
}

TEST(PromptEncoding, DecodingRepairsTextAndRefusesForeignIds) {
  const BosTokenizer tokenizer(0, true);
  EXPECT_EQ(*DecodeTokens(Tokens{0, 4, 5}, true, tokenizer), "a\uFFFD");
  EXPECT_EQ(*DecodeTokens(Tokens{0, 4}, false, tokenizer), "<s>a");
  EXPECT_EQ(base::FieldOf(DecodeTokens(Tokens{6}, true, tokenizer).status()), "token_ids");
}

TEST(PromptEncoding, A6_ATextOfTokensKeepsEverySpaceButTheOneThatBeginsIt) {
  const SpaceTokenizer tokenizer;
  EXPECT_EQ(*DecodeTokens(Tokens{2, 3, 4, 5}, true, tokenizer), "Daily news is");
  EXPECT_EQ(*DecodeTokens(Tokens{0, 2, 3}, true, tokenizer), "Daily new");
  EXPECT_EQ(*DecodeTokens(Tokens{0, 2, 3}, false, tokenizer), "<s> Daily new");
}

TEST(PromptEncoding, A6_AReplyGoesOnWithThePromptsTextAndBeginsATextOnlyAfterNone) {
  using FirstSpace = text::TextStream::FirstSpace;
  constexpr auto kSkipped = text::ControlTokens::kSkipped;
  const SpaceTokenizer tokenizer;
  EXPECT_EQ(FirstSpaceAfter(Tokens{0, 2}, kSkipped, tokenizer), FirstSpace::kKept);
  EXPECT_EQ(FirstSpaceAfter(Tokens{0}, kSkipped, tokenizer), FirstSpace::kDropped);
  EXPECT_EQ(FirstSpaceAfter(Tokens{0}, text::ControlTokens::kShown, tokenizer), FirstSpace::kKept);
  EXPECT_EQ(FirstSpaceAfter(Tokens{0}, kSkipped, BosTokenizer(0, true)), FirstSpace::kKept);
}

TEST(BadWords, AreEncodedWithAndWithoutTheSpaceBeforeThem) {
  // " cat" is a word of its own; " dog" and " x" are a space and the same word.
  const fakes::PieceTokenizer tokenizer({"cat", " cat", "dog", " ", "x", " y", "y", "z", "<s>"},
                                        {8});
  const auto encoded = [&tokenizer](std::vector<std::string> words) {
    return *EncodeBadWords(words, tokenizer);
  };
  EXPECT_EQ(encoded({"cat"}), (std::vector<Tokens>{{0}, {1}}));
  EXPECT_EQ(encoded({"  cat"}), (std::vector<Tokens>{{0}, {1}}));
  EXPECT_EQ(encoded({"dog"}), (std::vector<Tokens>{{2}}));
  EXPECT_EQ(encoded({"yz", "x"}), (std::vector<Tokens>{{6, 7}, {5, 7}, {4}}));
  EXPECT_EQ(encoded({"<s>"}), (std::vector<Tokens>{{8}}));
  EXPECT_EQ(encoded({}), (std::vector<Tokens>{}));
}

// What a vocabulary writes as one token behind a space may be several without it, and the other
// way.
TEST(BadWords, AreEncodedBehindASpaceWhateverTheNumberOfTokens) {
  const fakes::PieceTokenizer tokenizer({"th", "ere", " there", "hi", " h", "i", " "});
  const auto encoded = [&tokenizer](std::vector<std::string> words) {
    return *EncodeBadWords(words, tokenizer);
  };
  EXPECT_EQ(encoded({"there"}), (std::vector<Tokens>{{0, 1}, {2}}));
  EXPECT_EQ(encoded({" there"}), (std::vector<Tokens>{{0, 1}, {2}}));
  EXPECT_EQ(encoded({"hi"}), (std::vector<Tokens>{{3}, {4, 5}}));
}

TEST(BadWords, AreBoundedInNumberAndLengthAndNeverBlank) {
  const fakes::PieceTokenizer tokenizer({"a", " "});
  const auto field = [&tokenizer](const std::vector<std::string>& words) {
    return base::FieldOf(EncodeBadWords(words, tokenizer).status());
  };
  EXPECT_EQ(field(std::vector<std::string>(256, "a")), "");
  EXPECT_EQ(field(std::vector<std::string>(257, "a")), "bad_words");
  EXPECT_EQ(field({std::string(256, 'a')}), "");
  EXPECT_EQ(field({std::string(257, 'a')}), "bad_words");
  EXPECT_EQ(field({""}), "bad_words");
  EXPECT_EQ(field({" \t\n"}), "bad_words");
  EXPECT_EQ(field({"b"}), "bad_words");
}

}  // namespace
}  // namespace pagoda::server
