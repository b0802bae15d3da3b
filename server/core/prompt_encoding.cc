#include "server/core/prompt_encoding.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/sampling_params.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/core/refusal.h"
#include "text/load_chat_template.h"

namespace pagoda::server {
namespace {

using Tokens = std::vector<base::TokenId>;

text::TextStream::FirstSpace FirstSpaceOf(const text::Tokenizer& tokenizer) {
  using FirstSpace = text::TextStream::FirstSpace;
  return tokenizer.strips_first_space() ? FirstSpace::kDropped : FirstSpace::kKept;
}

void PutBosFirst(const text::Tokenizer& tokenizer, Tokens& tokens) {
  const auto bos = tokenizer.bos_token();
  if (bos.has_value() && (tokens.empty() || tokens.front() != *bos)) {
    tokens.insert(tokens.begin(), *bos);
  }
}

// The field that `status`, made by the tokenizer for a text, is about.
absl::Status AboutField(std::string_view field, const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInvalidArgument || !base::FieldOf(status).empty()) {
    return status;
  }
  return base::FieldError(field, base::ToStd(status.message()));
}

absl::StatusOr<EncodedPrompt> Encode(const TextPrompt& prompt, const ServedModel& model) {
  const text::Tokenizer& tokenizer = *model.tokenizer;
  if (prompt.add_bos.value_or(false) && !tokenizer.bos_token().has_value()) {
    return base::FieldError("add_bos", "the model has no BOS token; leave the field out");
  }
  const auto specials = prompt.parse_special_tokens ? text::Tokenizer::Specials::kControl
                                                    : text::Tokenizer::Specials::kPlain;
  auto tokens = tokenizer.Encode(prompt.text, specials);
  if (!tokens.ok()) return AboutField("text", tokens.status());
  if (prompt.add_bos.value_or(tokenizer.adds_bos())) PutBosFirst(tokenizer, *tokens);
  return EncodedPrompt{*std::move(tokens), {}};
}

absl::StatusOr<EncodedPrompt> Encode(const TokenPrompt& prompt, const ServedModel&) {
  return EncodedPrompt{prompt, {}};
}

absl::StatusOr<EncodedPrompt> Encode(const ChatPrompt& prompt, const ServedModel& model) {
  const text::Tokenizer& tokenizer = *model.tokenizer;
  if (model.chat_template == nullptr) {
    return base::WithReason(
        absl::FailedPreconditionError("the model's file has no chat template; use Generate"),
        reason::kNoChatTemplate);
  }
  if (prompt.messages.empty()) {
    return base::FieldError("messages", "empty; send at least one message");
  }
  text::ChatTemplateOptions options = text::OptionsOf(tokenizer);
  options.add_generation_prompt = prompt.add_generation_prompt;
  options.tools_json = prompt.tools_json;
  options.variables_json = prompt.template_variables_json;
  options.strict_variables = true;
  options.unix_seconds = std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  auto rendered = model.chat_template->Render(prompt.messages, options);
  if (absl::IsFailedPrecondition(rendered.status())) {
    return base::WithReason(
        absl::FailedPreconditionError(
            absl::StrCat("the model is at fault, not the request: ", rendered.status().message())),
        reason::kTemplateFailed);
  }
  if (!rendered.ok()) return AboutField("messages", rendered.status());
  auto tokens = tokenizer.EncodeMarked(*rendered);
  if (!tokens.ok()) return AboutField("messages", tokens.status());
  if (tokenizer.adds_bos()) PutBosFirst(tokenizer, *tokens);
  return EncodedPrompt{*std::move(tokens), rendered->Joined()};
}

bool EndsWith(const Tokens& tokens, const Tokens& end) {
  return tokens.size() >= end.size() && std::equal(end.rbegin(), end.rend(), tokens.rbegin());
}

absl::Status CheckBadWord(std::string_view word, std::string_view bare) {
  if (bare.empty()) {
    return base::FieldError("bad_words", "one is empty or blank; leave it out");
  }
  if (word.size() > static_cast<std::size_t>(base::kMaxBadWordBytes)) {
    return base::FieldError("bad_words",
                            base::ToStd(absl::StrCat("one has ", word.size(), " bytes; at most ",
                                                     base::kMaxBadWordBytes)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Tokens>> EncodeBadWords(std::span<const std::string> words,
                                                   const text::Tokenizer& tokenizer) {
  if (words.size() > static_cast<std::size_t>(base::kMaxBadWords)) {
    return base::FieldError("bad_words",
                            base::ToStd(absl::StrCat(words.size(), " were given; at most ",
                                                     base::kMaxBadWords, " are possible")));
  }
  std::vector<Tokens> lists;
  for (const std::string& word : words) {
    const std::size_t first = word.find_first_not_of(" \t\n\v\f\r");
    const std::string bare = first == std::string::npos ? std::string() : word.substr(first);
    PAGODA_RETURN_IF_ERROR(CheckBadWord(word, bare));
    auto alone = tokenizer.Encode(bare, text::Tokenizer::Specials::kControl);
    if (!alone.ok()) return AboutField("bad_words", alone.status());
    auto spaced = tokenizer.Encode(" " + bare, text::Tokenizer::Specials::kControl);
    // Where the word's own tokens end the spaced form, masking them masks that too.
    const bool is_other = spaced.ok() && !EndsWith(*spaced, *alone);
    lists.push_back(*std::move(alone));
    if (is_other) lists.push_back(*std::move(spaced));
  }
  return lists;
}

absl::StatusOr<std::string> EchoText(const PromptInput& prompt, const EncodedPrompt& encoded,
                                     const text::Tokenizer& tokenizer) {
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) return text->text;
  if (std::holds_alternative<ChatPrompt>(prompt)) return encoded.rendered_text;
  return DecodeTokens(encoded.tokens, /*skip_special=*/false, tokenizer);
}

absl::StatusOr<EncodedPrompt> EncodePrompt(const PromptInput& prompt, const ServedModel& model) {
  return std::visit([&model](const auto& input) { return Encode(input, model); }, prompt);
}

std::int64_t MaxPromptTokens(const PromptInput& prompt, const text::Tokenizer& tokenizer,
                             std::int32_t max_model_len) {
  std::int64_t bound = max_model_len;
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) {
    bound = static_cast<std::int64_t>(tokenizer.MaxTokens(text->text.size())) + 1;  // BOS
  } else if (const auto* tokens = std::get_if<TokenPrompt>(&prompt)) {
    bound = static_cast<std::int64_t>(tokens->size());
  }
  return std::min<std::int64_t>(bound, max_model_len);
}

text::TextStream::FirstSpace FirstSpaceAfter(std::span<const base::TokenId> prompt,
                                             text::ControlTokens control,
                                             const text::Tokenizer& tokenizer) {
  const bool is_shown = std::ranges::any_of(prompt, [&](base::TokenId token) {
    return !text::TextBytes(tokenizer, token, control).empty();
  });
  return is_shown ? text::TextStream::FirstSpace::kKept : FirstSpaceOf(tokenizer);
}

absl::StatusOr<std::string> DecodeTokens(std::span<const base::TokenId> tokens, bool skip_special,
                                         const text::Tokenizer& tokenizer) {
  text::TextStream stream(FirstSpaceOf(tokenizer));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= tokenizer.vocabulary_size()) {
      return base::FieldError(
          "token_ids",
          base::ToStd(absl::StrCat("id ", tokens[i], " at index ", i,
                                   " is outside the vocabulary of ", tokenizer.vocabulary_size())));
    }
    stream.Append(text::TextBytes(tokenizer, tokens[i], ControlTokensOf(skip_special)));
  }
  return stream.Finish(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace pagoda::server
