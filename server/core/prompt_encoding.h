#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "server/core/call_input.h"
#include "server/core/served_model.h"
#include "text/text_stream.h"

namespace pagoda::server {

struct EncodedPrompt {
  std::vector<base::TokenId> tokens;
  std::string rendered_text;  // of a chat: what the template made
};

// A prompt in any of its forms as token ids. BOS: a chat gets exactly one when the model's files
// ask for one (the template's own counts); a raw text gets one as `add_bos` says, absent as the
// files say, never a second. Errors name the field. Threads: any; linear in the length of the text.
absl::StatusOr<EncodedPrompt> EncodePrompt(const PromptInput& prompt, const ServedModel& model);

// An upper bound of the prompt's tokens that costs nothing to know, for the gate: a text has no
// more than its bytes allow, and a prompt over max_model_len is refused anyway.
std::int64_t MaxPromptTokens(const PromptInput& prompt, const text::Tokenizer& tokenizer,
                             std::int32_t max_model_len);

// The token lists that bad words stand for, as vLLM makes them: each word without the blank space
// before it, and once more behind a space where that begins with another token and is as long.
// Control tokens are written by their names. Errors: FieldError "bad_words" for too many, an empty
// one, one too long, one that is not UTF-8.
absl::StatusOr<std::vector<std::vector<base::TokenId>>> EncodeBadWords(
    std::span<const std::string> words, const text::Tokenizer& tokenizer);

// The prompt as text: what was sent, what the template made, or what its tokens spell.
absl::StatusOr<std::string> EchoText(const PromptInput& prompt, const EncodedPrompt& encoded,
                                     const text::Tokenizer& tokenizer);

// What becomes of a space that begins the reply to `prompt`: the reply goes on with the prompt's
// text, so it is only left out where nothing of the prompt shows and the reply begins the text.
// Requires: ids inside the vocabulary.
text::TextStream::FirstSpace FirstSpaceAfter(std::span<const base::TokenId> prompt,
                                             text::ControlTokens control,
                                             const text::Tokenizer& tokenizer);

// The text of tokens, repaired to UTF-8. Refuses (InvalidArgument, field token_ids) an id outside
// the vocabulary.
absl::StatusOr<std::string> DecodeTokens(std::span<const base::TokenId> tokens, bool skip_special,
                                         const text::Tokenizer& tokenizer);

inline text::ControlTokens ControlTokensOf(bool skip_special_tokens) {
  return skip_special_tokens ? text::ControlTokens::kSkipped : text::ControlTokens::kShown;
}

}  // namespace pagoda::server
