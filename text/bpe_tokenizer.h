#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/added_tokens.h"
#include "text/pair_merger.h"
#include "text/token_table.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// What both families of BPE tokenizers share: the tokens by id, and text cut at the added tokens
// that are found in it as it is. What lies between is the family's own business. Filled by its
// maker, then const; threads: any.
class BpeTokenizer : public Tokenizer {
 public:
  absl::StatusOr<std::vector<base::TokenId>> Encode(std::string_view text,
                                                    Specials specials) const override;
  absl::StatusOr<std::vector<base::TokenId>> EncodeMarked(const MarkedText& text) const override;
  std::string_view Bytes(base::TokenId id) const override;
  bool IsControl(base::TokenId id) const override;
  std::uint32_t vocabulary_size() const override;
  std::vector<base::TokenId> eos_tokens() const override { return eos_; }
  std::optional<base::TokenId> bos_token() const override { return bos_; }
  bool adds_bos() const override { return adds_bos_; }

 protected:
  using Kind = Vocabulary::TokenKind;
  // Buffers of one call.
  struct Work {
    std::vector<std::string_view> pieces;
    PairMerger::Scratch scratch;
    std::vector<base::TokenId> tokens;
  };

  // Requires: `vocabulary` passed CheckIds.
  explicit BpeTokenizer(const Vocabulary& vocabulary);

  // Errors: no tokens or too many, kinds that do not match them, special ids out of range, a BOS to
  // add that is not there.
  static absl::Status CheckIds(const Vocabulary& vocabulary);
  // Errors: an empty token that is not an unused one, two of one spelling.
  static absl::Status CheckSpellings(const Vocabulary& vocabulary);
  // What sets each token apart, by id.
  static std::vector<Vocabulary::Finding> FindingsOf(const Vocabulary& vocabulary);
  // Looks up the three tokens of each merge ("left right" and both joined) with `find`, and gives
  // them to `add`, which says whether the pair is new. Errors name the merge.
  static absl::Status ReadMerges(
      std::span<const std::string> merges,
      absl::FunctionRef<absl::StatusOr<base::TokenId>(std::string_view)> find,
      absl::FunctionRef<bool(base::TokenId, base::TokenId, base::TokenId)> add);
  static bool IsControlKind(Kind kind) { return kind == Kind::kControl || kind == Kind::kUnknown; }

  // Appends the tokens of `window` of `whole_text`, in which none of `added_` is.
  virtual absl::Status EncodeBetween(std::string_view whole_text, AddedTokens::Range window,
                                     std::span<const AddedTokens::Range> control_ranges,
                                     Work& work) const = 0;

  const std::vector<Kind> kinds_;
  TokenTable table_;              // the bytes that tokens stand for
  AddedTokens added_;             // found in the text as it is
  AddedTokens added_normalized_;  // found in what the first ones leave, normalised

 private:
  absl::StatusOr<std::vector<base::TokenId>> EncodeWithControl(
      std::string_view text, std::span<const AddedTokens::Range> control_ranges) const;

  const std::vector<base::TokenId> eos_;
  const std::optional<base::TokenId> bos_;
  const bool adds_bos_;
};

}  // namespace pagoda::text
