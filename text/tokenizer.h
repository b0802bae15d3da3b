#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "text/marked_text.h"

namespace pagoda::formats {
class GgufFile;
}

namespace pagoda::text {

// Text to tokens and back to bytes. Const after construction; threads: any.
class Tokenizer {
 public:
  // Reads the vocabulary of a GGUF file. Refuses (InvalidArgument) a missing or unknown model or
  // pre-tokenizer name, unless `pre_tokenizer` names one; a merge of unknown tokens; duplicate
  // tokens; ids out of range.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> FromGguf(
      const formats::GgufFile& file, std::optional<std::string_view> pre_tokenizer = std::nullopt);
  virtual ~Tokenizer() = default;

  // kPlain: control tokens in the text are ordinary characters. kControl: they become their ids.
  enum class Specials : std::uint8_t { kPlain, kControl };
  // Requires: valid UTF-8 (InvalidArgument names the offset of the first bad byte). Time is linear
  // in the length of text, and n log n in the length of its longest piece that cannot be split.
  virtual absl::StatusOr<std::vector<base::TokenId>> Encode(std::string_view text,
                                                            Specials specials) const = 0;
  // A template's own parts may hold control tokens, input parts never; neighbouring parts are split
  // as one text, so the ids equal those of the joined text wherever the input holds no control
  // token.
  virtual absl::StatusOr<std::vector<base::TokenId>> EncodeMarked(const MarkedText& text) const = 0;

  // No text of `num_bytes` has more tokens than this.
  virtual std::size_t MaxTokens(std::size_t num_bytes) const { return num_bytes; }
  // The bytes a token stands for; a control token's own spelling. Requires: id < vocabulary_size().
  virtual std::string_view Bytes(base::TokenId id) const = 0;
  virtual bool IsControl(base::TokenId id) const = 0;
  virtual std::uint32_t vocabulary_size() const = 0;
  virtual std::vector<base::TokenId> eos_tokens() const = 0;
  virtual std::optional<base::TokenId> bos_token() const = 0;
  virtual bool adds_bos() const = 0;  // what the file says about raw prompts
  // Whether a space that begins a text is not part of it: tokens spell the first word of a text
  // with the space that any other word has before it.
  virtual bool strips_first_space() const { return false; }
};

// Whether control tokens are part of generated text, by their own spelling.
enum class ControlTokens : std::uint8_t { kSkipped, kShown };

// A token's bytes as generated text counts them: none for a control token that is skipped.
inline std::string_view TextBytes(const Tokenizer& tokenizer, base::TokenId id,
                                  ControlTokens control = ControlTokens::kSkipped) {
  const bool skipped = control == ControlTokens::kSkipped && tokenizer.IsControl(id);
  return skipped ? std::string_view() : tokenizer.Bytes(id);
}

}  // namespace pagoda::text
