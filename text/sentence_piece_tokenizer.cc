// Text goes through these stages: added tokens are cut out, spaces are marked, and the characters
// of what lies between are merged. A symbol is a token, or a bare character: one that has no token
// but is part of others. Bare characters are numbered after the tokens. A character that is neither
// cannot take part in a merge, so the text is cut there.

#include "text/sentence_piece_tokenizer.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/added_tokens.h"
#include "text/bpe_tokenizer.h"
#include "text/pair_merger.h"
#include "text/score_pairs.h"
#include "text/space_marks.h"
#include "text/token_table.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Kind = Vocabulary::TokenKind;
using Prefix = SpaceMarks::Prefix;

constexpr std::size_t kAscii = 128;
constexpr std::size_t kBytes = 256;

std::optional<unsigned char> ByteOfSpelling(std::string_view spelling) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || !spelling.ends_with('>')) {
    return std::nullopt;
  }
  const std::size_t high = kDigits.find(spelling[3]), low = kDigits.find(spelling[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

// Symbols by their spelling.
class SymbolTable {
 public:
  explicit SymbolTable(std::size_t num_symbols) : table_(num_symbols) {
    ascii_.fill(PairMerger::kNoToken);
  }
  void Add(TokenId symbol, std::string_view spelling) {
    table_.SetBytes(symbol, std::string(spelling));
    PAGODA_CHECK(table_.MakeFindable(symbol));
    const auto first = static_cast<unsigned char>(spelling.front());
    if (spelling.size() == 1 && first < kAscii) ascii_[first] = symbol;
  }
  // kNoToken when there is none.
  TokenId Find(std::string_view spelling) const {
    const auto first = static_cast<unsigned char>(spelling.front());
    if (spelling.size() == 1 && first < kAscii) return ascii_[first];
    return table_.Find(spelling).value_or(PairMerger::kNoToken);
  }
  std::string_view Spelling(TokenId symbol) const { return table_.Bytes(symbol); }

 private:
  TokenTable table_;
  std::array<TokenId, kAscii> ascii_{};  // of one byte
};

class SentencePieceTokenizer final : public BpeTokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Make(const Vocabulary& vocabulary);
  SentencePieceTokenizer(const Vocabulary& vocabulary, const ScorePairs& scored)
      : BpeTokenizer(vocabulary),
        marks_(*vocabulary.space_marks),
        ignores_merges_(vocabulary.ignores_merges),
        symbols_(vocabulary.tokens.size() + scored.bare_characters.size()),
        merger_(scored.pairs.size() + vocabulary.merges.size()) {
    byte_tokens_.fill(PairMerger::kNoToken);
  }
  bool strips_first_space() const override { return marks_.strips_first_space; }
  // One mark more than bytes; with each added token of one byte another stretch may begin.
  std::size_t MaxTokens(std::size_t num_bytes) const override {
    return (has_short_added_ ? 2 * num_bytes : num_bytes) + 1;
  }

 private:
  absl::Status AddTokens(const Vocabulary& vocabulary);
  absl::Status AddFoundToken(std::string_view spelling, TokenId id,
                             const Vocabulary::Finding& finding, TokenTable& normalized);
  absl::Status EncodeBetween(std::string_view whole_text, AddedTokens::Range window,
                             std::span<const AddedTokens::Range> control_ranges,
                             Work& work) const override;
  absl::Status CheckBytes() const;
  void AddScored(const ScorePairs& scored);
  absl::Status AddMerges(const Vocabulary& vocabulary);
  void EncodeFound(std::string_view text, std::span<const AddedTokens::Range> control_ranges,
                   Work& work, absl::FunctionRef<void(std::string_view, std::size_t)> encode) const;
  // What a normalizer puts before a stretch that begins at `begin`.
  std::string_view PrefixAt(std::size_t begin) const;
  std::string PrefixedSpelling(std::string_view spelling) const;
  // `marked` has its spaces marked; so it is encoded, by whole if it is a token and merges do not
  // count.
  void EncodePlain(std::string_view marked, Work& work) const;
  // Appends what the symbols collected so far are merged into.
  void FinishPiece(Work& work) const;
  void AppendBytes(std::string_view bytes, Work& work) const;

  const SpaceMarks marks_;
  const bool ignores_merges_;
  std::array<TokenId, kBytes> byte_tokens_{};
  SymbolTable symbols_;
  PairMerger merger_;
  TokenId mark_symbol_ = PairMerger::kNoToken;
  // No token goes on over a space, so each word can be merged alone.
  bool cuts_before_marks_ = true;
  bool has_short_added_ = false;
};

// Whether `spelling` has a mark after another character.
bool GoesOnOverSpace(std::string_view spelling) {
  for (std::size_t at = spelling.find(kSpaceMark, 1); at != std::string_view::npos;
       at = spelling.find(kSpaceMark, at + 1)) {
    if (!spelling.substr(0, at).ends_with(kSpaceMark)) return true;
  }
  return false;
}

std::string SentencePieceTokenizer::PrefixedSpelling(std::string_view spelling) const {
  if (!marks_.is_normalizer) return std::string(spelling);
  const bool has_prefix = marks_.prefix != Prefix::kNone;
  return (has_prefix ? std::string(kSpaceMark) : std::string()) + MarkSpaces(spelling);
}

absl::Status SentencePieceTokenizer::AddFoundToken(std::string_view spelling, TokenId id,
                                                   const Vocabulary::Finding& finding,
                                                   TokenTable& normalized) {
  const AddedTokens::Traits traits{.is_control = IsControlKind(kinds_[id]),
                                   .strips_left = finding.strips_left,
                                   .strips_right = finding.strips_right};
  has_short_added_ = has_short_added_ || spelling.size() == 1;
  if (!finding.normalized) {
    added_.Add(spelling, id, traits);
    return absl::OkStatus();
  }
  const std::string marked = PrefixedSpelling(spelling);
  normalized.SetBytes(id, marked);
  if (!normalized.MakeFindable(id)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "token ", id, " is the same in normalised text as token ", *normalized.Find(marked)));
  }
  added_normalized_.Add(marked, id, traits);
  return absl::OkStatus();
}

absl::Status SentencePieceTokenizer::AddTokens(const Vocabulary& vocabulary) {
  const std::vector<Vocabulary::Finding> findings = FindingsOf(vocabulary);
  TokenTable normalized(vocabulary.tokens.size());
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& spelling = vocabulary.tokens[id];
    if (spelling.empty()) continue;
    if (kinds_[id] == Kind::kByte) {
      const std::optional<unsigned char> byte = ByteOfSpelling(spelling);
      if (!byte.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "token ", id, " is a byte token but is not spelt as one: '", spelling, "'"));
      }
      table_.SetBytes(id, std::string(1, static_cast<char>(*byte)));
      byte_tokens_[*byte] = id;  // spellings differ, so bytes do
      continue;
    }
    // One that is found with the mark before it stands for that space too.
    const bool has_prefix = kinds_[id] == Kind::kUserDefined && findings[id].normalized;
    table_.SetBytes(id, UnmarkSpaces(has_prefix ? PrefixedSpelling(spelling) : spelling));
    if (kinds_[id] == Kind::kNormal) {
      symbols_.Add(id, spelling);
      cuts_before_marks_ = cuts_before_marks_ && !GoesOnOverSpace(spelling);
    } else if (kinds_[id] != Kind::kUnused) {
      PAGODA_RETURN_IF_ERROR(AddFoundToken(spelling, id, findings[id], normalized));
    }
  }
  return CheckBytes();
}

absl::Status SentencePieceTokenizer::CheckBytes() const {
  for (std::size_t byte = 0; byte < kBytes; ++byte) {
    if (byte_tokens_[byte] != PairMerger::kNoToken) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("byte ", byte, " has no token; a SentencePiece vocabulary needs all 256, for ",
                     "unknown tokens are not built"));
  }
  return absl::OkStatus();
}

void SentencePieceTokenizer::AddScored(const ScorePairs& scored) {
  auto symbol = static_cast<TokenId>(table_.size());
  for (const std::string& character : scored.bare_characters) symbols_.Add(symbol++, character);
  for (const ScorePairs::Pair& pair : scored.pairs) {
    PAGODA_CHECK(merger_.Add(pair.left, pair.right, pair.result));
  }
}

absl::Status SentencePieceTokenizer::AddMerges(const Vocabulary& vocabulary) {
  std::uint32_t rank = 0;
  return ReadMerges(
      vocabulary.merges,
      [this](std::string_view name) -> absl::StatusOr<TokenId> {
        const TokenId symbol = name.empty() ? PairMerger::kNoToken : symbols_.Find(name);
        if (symbol != PairMerger::kNoToken) return symbol;
        return absl::InvalidArgumentError(
            absl::StrCat("'", base::ToAbsl(name), "' is not a normal token"));
      },
      [this, &rank](TokenId left, TokenId right, TokenId result) {
        return merger_.Add(left, right, {.rank = rank++, .token = result});
      });
}

absl::Status SentencePieceTokenizer::EncodeBetween(
    std::string_view whole_text, AddedTokens::Range window,
    std::span<const AddedTokens::Range> control_ranges, Work& work) const {
  const std::string_view text = whole_text.substr(window.begin, window.end - window.begin);
  if (text.empty()) return absl::OkStatus();
  const auto inside = AddedTokens::Within(control_ranges, window);
  if (marks_.is_normalizer) {
    const MarkedStretch marked = MarkStretch(PrefixAt(window.begin), text, inside);
    EncodeFound(marked.text, marked.control_ranges, work,
                [&](std::string_view plain, std::size_t) { EncodePlain(plain, work); });
    return absl::OkStatus();
  }
  EncodeFound(text, inside, work, [&](std::string_view plain, std::size_t begin) {
    std::string marked = MarkSpaces(plain);
    if (!marked.starts_with(kSpaceMark)) marked.insert(0, PrefixAt(window.begin + begin));
    EncodePlain(marked, work);
  });
  return absl::OkStatus();
}

void SentencePieceTokenizer::EncodeFound(
    std::string_view text, std::span<const AddedTokens::Range> control_ranges, Work& work,
    absl::FunctionRef<void(std::string_view, std::size_t)> encode) const {
  std::size_t begin = 0;
  const auto encode_until = [&](std::size_t end) {
    if (end > begin) encode(text.substr(begin, end - begin), begin);
  };
  if (!added_normalized_.empty()) {
    for (const AddedTokens::Found& found : added_normalized_.FindAll(text, control_ranges)) {
      encode_until(found.begin);
      work.tokens.push_back(found.token);
      begin = found.end;
    }
  }
  encode_until(text.size());
}

std::string_view SentencePieceTokenizer::PrefixAt(std::size_t begin) const {
  const bool has_prefix =
      marks_.prefix == Prefix::kEach || (marks_.prefix == Prefix::kFirst && begin == 0);
  return has_prefix ? kSpaceMark : std::string_view();
}

void SentencePieceTokenizer::EncodePlain(std::string_view marked, Work& work) const {
  std::vector<TokenId>& symbols = work.scratch.tokens;
  symbols.clear();
  if (ignores_merges_) {
    const TokenId whole = symbols_.Find(marked);
    if (whole != PairMerger::kNoToken) {
      work.tokens.push_back(whole);
      return;
    }
  }
  while (!marked.empty()) {
    const std::string_view character = marked.substr(0, ReadUtf8(marked).length);
    marked.remove_prefix(character.size());
    const TokenId symbol = symbols_.Find(character);
    if (symbol == PairMerger::kNoToken) {
      FinishPiece(work);
      AppendBytes(character, work);
      continue;
    }
    const bool begins_word = symbol == mark_symbol_ && !symbols.empty() &&
                             symbols.back() != mark_symbol_ && cuts_before_marks_;
    if (begins_word) FinishPiece(work);
    symbols.push_back(symbol);
  }
  FinishPiece(work);
}

void SentencePieceTokenizer::FinishPiece(Work& work) const {
  std::vector<TokenId>& symbols = work.scratch.tokens;
  merger_.Merge(work.scratch);
  for (const TokenId symbol : symbols) {
    if (symbol < table_.size()) {
      work.tokens.push_back(symbol);
    } else {
      AppendBytes(symbols_.Spelling(symbol), work);
    }
  }
  symbols.clear();
}

void SentencePieceTokenizer::AppendBytes(std::string_view bytes, Work& work) const {
  for (const char byte : bytes) {
    work.tokens.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
  }
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> SentencePieceTokenizer::Make(
    const Vocabulary& vocabulary) {
  PAGODA_CHECK(vocabulary.space_marks.has_value());
  PAGODA_RETURN_IF_ERROR(CheckIds(vocabulary));
  PAGODA_RETURN_IF_ERROR(CheckSpellings(vocabulary));
  ScorePairs scored;
  if (!vocabulary.scores.empty()) {
    PAGODA_ASSIGN_OR_RETURN(scored, FindScorePairs(vocabulary));
  }
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(vocabulary, scored);
  PAGODA_RETURN_IF_ERROR(tokenizer->AddTokens(vocabulary));
  tokenizer->AddScored(scored);
  PAGODA_RETURN_IF_ERROR(tokenizer->AddMerges(vocabulary));
  tokenizer->mark_symbol_ = tokenizer->symbols_.Find(kSpaceMark);
  if (tokenizer->mark_symbol_ >= vocabulary.tokens.size()) {
    return absl::InvalidArgumentError("the space mark (U+2581) has no token");
  }
  return tokenizer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> MakeSentencePieceTokenizer(
    const Vocabulary& vocabulary) {
  return SentencePieceTokenizer::Make(vocabulary);
}

}  // namespace pagoda::text
