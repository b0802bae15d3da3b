// Text goes through these stages: added tokens are cut out, what lies between is normalised, added
// tokens that are looked for in normalised text are cut out, what lies between is split into pieces
// by the model's rule, and the bytes of each piece are merged. A piece that is a token, and that
// merging would lead to, is looked up whole.

#include "text/byte_bpe_tokenizer.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/added_tokens.h"
#include "text/byte_alphabet.h"
#include "text/byte_pair_merger.h"
#include "text/nfc.h"
#include "text/splitter.h"
#include "text/token_table.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Kind = Vocabulary::TokenKind;

// Positions inside a piece are 32-bit; no request comes near.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

bool IsSpeltInAlphabet(Kind kind) { return kind == Kind::kNormal || kind == Kind::kUnused; }
bool IsControlKind(Kind kind) { return kind == Kind::kControl || kind == Kind::kUnknown; }

// The parts of `ranges` inside `window`, counted from its begin.
std::vector<AddedTokens::Range> Within(std::span<const AddedTokens::Range> ranges,
                                       AddedTokens::Range window) {
  std::vector<AddedTokens::Range> parts;
  auto at = std::ranges::upper_bound(ranges, window.begin, {}, &AddedTokens::Range::end);
  for (; at != ranges.end() && at->begin < window.end; ++at) {
    parts.push_back({.begin = std::max(at->begin, window.begin) - window.begin,
                     .end = std::min(at->end, window.end) - window.begin});
  }
  return parts;
}

class ByteBpeTokenizer : public Tokenizer {
 public:
  ByteBpeTokenizer(const Vocabulary& vocabulary, std::unique_ptr<const Splitter> splitter)
      : splitter_(std::move(splitter)),
        kinds_(vocabulary.kinds),
        eos_(vocabulary.eos),
        bos_(vocabulary.bos),
        adds_bos_(vocabulary.adds_bos),
        ignores_merges_(vocabulary.ignores_merges),
        normalizes_(vocabulary.normalizer == Vocabulary::Normalizer::kNfc),
        table_(vocabulary.tokens.size()),
        merger_(vocabulary.merges.size()),
        is_whole_piece_(vocabulary.tokens.size()) {}

  absl::Status AddTokens(const Vocabulary& vocabulary);
  absl::Status AddMerges(std::span<const std::string> merges);
  void FindWholePieces();

  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              Specials specials) const override {
    const AddedTokens::Range everywhere{.begin = 0, .end = text.size()};
    const bool control = specials == Specials::kControl;
    return EncodeWithControl(text, std::span(&everywhere, control ? 1 : 0));
  }
  absl::StatusOr<std::vector<TokenId>> EncodeMarked(const MarkedText& text) const override;

  std::string_view Bytes(TokenId id) const override {
    PAGODA_CHECK(id < table_.size());
    return table_.Bytes(id);
  }
  bool IsControl(TokenId id) const override {
    PAGODA_CHECK(id < kinds_.size());
    return IsControlKind(kinds_[id]);
  }
  std::uint32_t vocabulary_size() const override {
    return static_cast<std::uint32_t>(table_.size());
  }
  std::vector<TokenId> eos_tokens() const override { return eos_; }
  std::optional<TokenId> bos_token() const override { return bos_; }
  bool adds_bos() const override { return adds_bos_; }

 private:
  // Buffers of one call.
  struct Work {
    std::vector<std::string_view> pieces;
    BytePairMerger::Scratch scratch;
    std::vector<TokenId> tokens;
  };

  absl::StatusOr<TokenId> FindNamed(std::string_view spelling) const;
  absl::StatusOr<std::vector<TokenId>> EncodeWithControl(
      std::string_view text, std::span<const AddedTokens::Range> control_ranges) const;
  absl::Status AddFoundToken(std::string_view spelling, TokenId id,
                             const Vocabulary::Finding& finding);
  // `window` of `whole_text`, which has no token of added_.
  absl::Status EncodeBetween(std::string_view whole_text, AddedTokens::Range window,
                             std::span<const AddedTokens::Range> control_ranges, Work& work) const;
  absl::Status EncodePlain(std::string_view text, Work& work) const;

  const std::unique_ptr<const Splitter> splitter_;
  const std::vector<Kind> kinds_;
  const std::vector<TokenId> eos_;
  const std::optional<TokenId> bos_;
  const bool adds_bos_;
  const bool ignores_merges_;
  const bool normalizes_;
  TokenTable table_;              // findable: what merging can make
  AddedTokens added_;             // found in the text as it is
  AddedTokens added_normalized_;  // found in what the first ones leave, normalised
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
  std::vector<Vocabulary::Finding> findings(spellings.size());
  for (const Vocabulary::Finding& finding : vocabulary.findings) {
    PAGODA_CHECK(finding.token < findings.size());
    findings[finding.token] = finding;
  }
  // Control and user-defined tokens have names of their own; two of one name would make the text
  // ambiguous.
  TokenTable names(spellings.size());
  for (TokenId id = 0; id < spellings.size(); ++id) {
    const std::string& spelling = spellings[id];
    if (spelling.empty() && kinds_[id] == Kind::kUnused) continue;
    if (spelling.empty())
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " is empty"));
    names.SetBytes(id, spelling);
    if (!names.MakeFindable(id)) {
      return absl::InvalidArgumentError(absl::StrCat("token ", id,
                                                     " repeats the spelling of token ",
                                                     *names.Find(spelling), ": '", spelling, "'"));
    }
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

absl::Status ByteBpeTokenizer::AddMerges(std::span<const std::string> merges) {
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const auto fault = [rank, merge](std::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("merge ", rank, " ('", base::ToAbsl(merge), "'): ", base::ToAbsl(what)));
    };
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos) return fault("expected two tokens with a space between");
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const absl::StatusOr<TokenId> left_id = FindNamed(left);
    if (!left_id.ok()) return fault(base::ToStd(left_id.status().message()));
    const absl::StatusOr<TokenId> right_id = FindNamed(right);
    if (!right_id.ok()) return fault(base::ToStd(right_id.status().message()));
    const absl::StatusOr<TokenId> result =
        FindNamed(absl::StrCat(base::ToAbsl(left), base::ToAbsl(right)));
    if (!result.ok()) return fault(base::ToStd(result.status().message()));
    if (!merger_.AddMerge(*left_id, *right_id, *result)) return fault("repeats an earlier merge");
  }
  return absl::OkStatus();
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

absl::StatusOr<std::vector<TokenId>> ByteBpeTokenizer::EncodeMarked(const MarkedText& text) const {
  std::vector<AddedTokens::Range> control_ranges;
  std::size_t end = 0;
  for (const MarkedText::Part& part : text.parts) {
    const std::size_t begin = end;
    end += part.text.size();
    if (!part.from_input) control_ranges.push_back({.begin = begin, .end = end});
  }
  return EncodeWithControl(text.Joined(), control_ranges);
}

absl::StatusOr<std::vector<TokenId>> ByteBpeTokenizer::EncodeWithControl(
    std::string_view text, std::span<const AddedTokens::Range> control_ranges) const {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("text has ", text.size(), " bytes; at most ", kMaxTextBytes, " are taken"));
  }
  if (const std::optional<std::size_t> bad = FirstBadUtf8(text); bad.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("text is not valid UTF-8: first bad byte at offset ", *bad));
  }
  Work work;
  work.tokens.reserve(text.size() / 4 + 1);
  std::size_t plain_begin = 0;
  for (const AddedTokens::Found& found : added_.FindAll(text, control_ranges)) {
    const AddedTokens::Range between{.begin = plain_begin, .end = found.begin};
    PAGODA_RETURN_IF_ERROR(EncodeBetween(text, between, control_ranges, work));
    work.tokens.push_back(found.token);
    plain_begin = found.end;
  }
  const AddedTokens::Range rest{.begin = plain_begin, .end = text.size()};
  PAGODA_RETURN_IF_ERROR(EncodeBetween(text, rest, control_ranges, work));
  return std::move(work.tokens);
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
       added_normalized_.FindAll(text, Within(control_ranges, window))) {
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

absl::Status CheckIds(const Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  if (size == 0) return absl::InvalidArgumentError("the vocabulary has no tokens");
  if (size >= BytePairMerger::kNoToken) {
    return absl::InvalidArgumentError(absl::StrCat("too many tokens: ", size));
  }
  if (vocabulary.kinds.size() != size) {
    return absl::InvalidArgumentError(absl::StrCat("the vocabulary has ", size, " tokens and ",
                                                   vocabulary.kinds.size(), " kinds"));
  }
  const auto in_range = [size](std::string_view name, TokenId id) {
    if (id < size) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(base::ToAbsl(name), " token ", id, " is outside the vocabulary of ", size));
  };
  if (vocabulary.bos.has_value()) PAGODA_RETURN_IF_ERROR(in_range("BOS", *vocabulary.bos));
  for (const TokenId id : vocabulary.eos) PAGODA_RETURN_IF_ERROR(in_range("EOS", id));
  if (vocabulary.adds_bos && !vocabulary.bos.has_value()) {
    return absl::InvalidArgumentError("BOS is to be added but no BOS token is named");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> MakeByteBpeTokenizer(
    const Vocabulary& vocabulary) {
  PAGODA_RETURN_IF_ERROR(CheckIds(vocabulary));
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<const Splitter> splitter,
                          Splitter::Create(vocabulary.pre_tokenizer));
  auto tokenizer = std::make_unique<ByteBpeTokenizer>(vocabulary, std::move(splitter));
  PAGODA_RETURN_IF_ERROR(tokenizer->AddTokens(vocabulary));
  PAGODA_RETURN_IF_ERROR(tokenizer->AddMerges(vocabulary.merges));
  tokenizer->FindWholePieces();
  return tokenizer;
}

}  // namespace pagoda::text
