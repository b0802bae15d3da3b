// Text goes through these stages: added tokens are cut out, what lies between is normalised, added
// tokens that are looked for in normalised text are cut out, what lies between is split into pieces
// by the model's rule, and the bytes of each piece are merged. A piece that is a token, and that
// merging would lead to, is looked up whole.

#include "text/byte_bpe_tokenizer.h"

#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/added_tokens.h"
#include "text/bpe_tokenizer.h"
#include "text/byte_alphabet.h"
#include "text/byte_pair_merger.h"
#include "text/nfc.h"
#include "text/splitter.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Kind = Vocabulary::TokenKind;

// The most that form C can grow a text in UTF-8, by Unicode's own figure.
constexpr std::size_t kNfcGrowth = 3;

bool IsSpeltInAlphabet(Kind kind) { return kind == Kind::kNormal || kind == Kind::kUnused; }

class ByteBpeTokenizer final : public BpeTokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Make(const Vocabulary& vocabulary);
  ByteBpeTokenizer(const Vocabulary& vocabulary, std::unique_ptr<const Splitter> splitter)
      : BpeTokenizer(vocabulary),
        splitter_(std::move(splitter)),
        ignores_merges_(vocabulary.ignores_merges),
        normalizes_(vocabulary.normalizer == Vocabulary::Normalizer::kNfc),
        merger_(vocabulary.merges.size()),
        is_whole_piece_(vocabulary.tokens.size()) {}
  std::size_t MaxTokens(std::size_t num_bytes) const override {
    return normalizes_ ? kNfcGrowth * num_bytes : num_bytes;
  }

 private:
  absl::Status AddTokens(const Vocabulary& vocabulary);
  void FindWholePieces();
  absl::StatusOr<TokenId> FindNamed(std::string_view spelling) const;
  absl::Status AddFoundToken(std::string_view spelling, TokenId id,
                             const Vocabulary::Finding& finding);
  absl::Status EncodeBetween(std::string_view whole_text, AddedTokens::Range window,
                             std::span<const AddedTokens::Range> control_ranges,
                             Work& work) const override;
  absl::Status EncodePlain(std::string_view text, Work& work) const;

  const std::unique_ptr<const Splitter> splitter_;
  const bool ignores_merges_;
  const bool normalizes_;
  // What merging can make is findable in table_.
  BytePairMerger merger_;
  std::vector<bool> is_whole_piece_;
};

absl::Status ByteBpeTokenizer::AddFoundToken(std::string_view spelling, TokenId id,
                                             const Vocabulary::Finding& finding) {
  const AddedTokens::Traits traits{.is_control = IsControlKind(kinds_[id]),
                                   .strips_left = finding.strips_left,
                                   .strips_right = finding.strips_right};
  if (!finding.normalized) {
    added_.Add(spelling, id, traits);
    return absl::OkStatus();
  }
  if (normalizes_ && traits.is_control) {
    // Whose words they are is not known after normalising.
    return absl::InvalidArgumentError(absl::StrCat(
        "token ", id, " ('", base::ToAbsl(spelling),
        "') is a control token looked for in normalised text, which is not supported"));
  }
  if (normalizes_ && NormalizeNfc(spelling) != spelling) {
    return absl::InvalidArgumentError(
        absl::StrCat("token ", id, " is looked for in normalised text but is not in normal form"));
  }
  added_normalized_.Add(spelling, id, traits);
  return absl::OkStatus();
}

absl::Status ByteBpeTokenizer::AddTokens(const Vocabulary& vocabulary) {
  const std::span<const std::string> spellings = vocabulary.tokens;
  const std::vector<Vocabulary::Finding> findings = FindingsOf(vocabulary);
  for (TokenId id = 0; id < spellings.size(); ++id) {
    const std::string& spelling = spellings[id];
    if (spelling.empty()) continue;
    if (kinds_[id] == Kind::kByte) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token ", id, " is a byte-fallback token; a byte-level vocabulary has none"));
    }
    if (!IsSpeltInAlphabet(kinds_[id])) {
      table_.SetBytes(id, spelling);
      PAGODA_RETURN_IF_ERROR(AddFoundToken(spelling, id, findings[id]));
      continue;
    }
    std::optional<std::string> bytes = BytesOfSpelling(spelling);
    if (!bytes.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " is not spelt in the byte alphabet: '", spelling, "'"));
    }
    table_.SetBytes(id, *std::move(bytes));
    if (kinds_[id] != Kind::kNormal) continue;
    PAGODA_CHECK(table_.MakeFindable(id));  // the alphabet is one to one, and spellings differ
    const std::string_view own = table_.Bytes(id);
    if (own.size() == 1) merger_.SetByteToken(static_cast<unsigned char>(own[0]), id);
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenId> ByteBpeTokenizer::FindNamed(std::string_view spelling) const {
  const std::optional<std::string> bytes = BytesOfSpelling(spelling);
  const std::optional<TokenId> id = bytes.has_value() ? table_.Find(*bytes) : std::nullopt;
  if (id.has_value()) return *id;
  return absl::InvalidArgumentError(
      absl::StrCat("'", base::ToAbsl(spelling), "' is not a normal token"));
}

void ByteBpeTokenizer::FindWholePieces() {
  BytePairMerger::Scratch scratch;
  std::vector<TokenId> merged;
  for (TokenId id = 0; id < table_.size(); ++id) {
    if (kinds_[id] != Kind::kNormal) continue;
    merged.clear();
    merger_.Encode(table_.Bytes(id), scratch, merged);
    is_whole_piece_[id] = merged.size() == 1 && merged[0] == id;
  }
}

absl::Status ByteBpeTokenizer::EncodeBetween(std::string_view whole_text, AddedTokens::Range window,
                                             std::span<const AddedTokens::Range> control_ranges,
                                             Work& work) const {
  std::string_view text = whole_text.substr(window.begin, window.end - window.begin);
  std::string normalized;
  if (normalizes_ && !IsPlainlyNfc(text)) {
    normalized = NormalizeNfc(text);
    text = normalized;
  }
  if (added_normalized_.empty()) return EncodePlain(text, work);
  // Control tokens are never among those looked for in text that normalising changes.
  std::size_t plain_begin = 0;
  for (const AddedTokens::Found& found :
       added_normalized_.FindAll(text, AddedTokens::Within(control_ranges, window))) {
    PAGODA_RETURN_IF_ERROR(EncodePlain(text.substr(plain_begin, found.begin - plain_begin), work));
    work.tokens.push_back(found.token);
    plain_begin = found.end;
  }
  return EncodePlain(text.substr(plain_begin), work);
}

absl::Status ByteBpeTokenizer::EncodePlain(std::string_view text, Work& work) const {
  work.pieces.clear();
  PAGODA_RETURN_IF_ERROR(splitter_->Split(text, work.pieces));
  for (const std::string_view piece : work.pieces) {
    const std::optional<TokenId> whole = table_.Find(piece);
    if (whole.has_value() && (ignores_merges_ || is_whole_piece_[*whole])) {
      work.tokens.push_back(*whole);
    } else {
      merger_.Encode(piece, work.scratch, work.tokens);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> ByteBpeTokenizer::Make(
    const Vocabulary& vocabulary) {
  PAGODA_RETURN_IF_ERROR(CheckIds(vocabulary));
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<const Splitter> splitter,
                          Splitter::Create(vocabulary.pre_tokenizer));
  PAGODA_RETURN_IF_ERROR(CheckSpellings(vocabulary));
  auto tokenizer = std::make_unique<ByteBpeTokenizer>(vocabulary, std::move(splitter));
  PAGODA_RETURN_IF_ERROR(tokenizer->AddTokens(vocabulary));
  PAGODA_RETURN_IF_ERROR(ReadMerges(
      vocabulary.merges, [&](std::string_view name) { return tokenizer->FindNamed(name); },
      [&](TokenId left, TokenId right, TokenId result) {
        return tokenizer->merger_.AddMerge(left, right, result);
      }));
  tokenizer->FindWholePieces();
  return tokenizer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> MakeByteBpeTokenizer(
    const Vocabulary& vocabulary) {
  return ByteBpeTokenizer::Make(vocabulary);
}

}  // namespace pagoda::text
