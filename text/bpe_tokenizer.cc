#include "text/bpe_tokenizer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

using base::TokenId;

// Positions inside a piece are 32-bit; no request comes near.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

}  // namespace

BpeTokenizer::BpeTokenizer(const Vocabulary& vocabulary)
    : kinds_(vocabulary.kinds),
      table_(vocabulary.tokens.size()),
      eos_(vocabulary.eos),
      bos_(vocabulary.bos),
      adds_bos_(vocabulary.adds_bos) {}

absl::Status BpeTokenizer::CheckIds(const Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  if (size == 0) return absl::InvalidArgumentError("the vocabulary has no tokens");
  if (size >= PairMerger::kNoToken) {
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

absl::Status BpeTokenizer::CheckSpellings(const Vocabulary& vocabulary) {
  // Control and user-defined tokens have names of their own; two of one name would make the text
  // ambiguous.
  TokenTable names(vocabulary.tokens.size());
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& spelling = vocabulary.tokens[id];
    if (spelling.empty() && vocabulary.kinds[id] == Kind::kUnused) continue;
    if (spelling.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " is empty"));
    }
    names.SetBytes(id, spelling);
    if (names.MakeFindable(id)) continue;
    return absl::InvalidArgumentError(absl::StrCat("token ", id, " repeats the spelling of token ",
                                                   *names.Find(spelling), ": '", spelling, "'"));
  }
  return absl::OkStatus();
}

std::vector<Vocabulary::Finding> BpeTokenizer::FindingsOf(const Vocabulary& vocabulary) {
  std::vector<Vocabulary::Finding> findings(vocabulary.tokens.size());
  for (const Vocabulary::Finding& finding : vocabulary.findings) {
    PAGODA_CHECK(finding.token < findings.size());
    findings[finding.token] = finding;
  }
  return findings;
}

absl::Status BpeTokenizer::ReadMerges(
    std::span<const std::string> merges,
    absl::FunctionRef<absl::StatusOr<TokenId>(std::string_view)> find,
    absl::FunctionRef<bool(TokenId, TokenId, TokenId)> add) {
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
    const absl::StatusOr<TokenId> left_id = find(left);
    if (!left_id.ok()) return fault(base::ToStd(left_id.status().message()));
    const absl::StatusOr<TokenId> right_id = find(right);
    if (!right_id.ok()) return fault(base::ToStd(right_id.status().message()));
    const absl::StatusOr<TokenId> result =
        find(absl::StrCat(base::ToAbsl(left), base::ToAbsl(right)));
    if (!result.ok()) return fault(base::ToStd(result.status().message()));
    if (!add(*left_id, *right_id, *result)) return fault("repeats an earlier merge");
  }
  return absl::OkStatus();
}

std::string_view BpeTokenizer::Bytes(TokenId id) const {
  PAGODA_CHECK(id < table_.size());
  return table_.Bytes(id);
}

bool BpeTokenizer::IsControl(TokenId id) const {
  PAGODA_CHECK(id < kinds_.size());
  return IsControlKind(kinds_[id]);
}

std::uint32_t BpeTokenizer::vocabulary_size() const {
  return static_cast<std::uint32_t>(table_.size());
}

absl::StatusOr<std::vector<TokenId>> BpeTokenizer::Encode(std::string_view text,
                                                          Specials specials) const {
  const AddedTokens::Range everywhere{.begin = 0, .end = text.size()};
  const bool control = specials == Specials::kControl;
  return EncodeWithControl(text, std::span(&everywhere, control ? 1 : 0));
}

absl::StatusOr<std::vector<TokenId>> BpeTokenizer::EncodeMarked(const MarkedText& text) const {
  return EncodeWithControl(text.Joined(), AddedTokens::ControlRangesOf(text));
}

absl::StatusOr<std::vector<TokenId>> BpeTokenizer::EncodeWithControl(
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

}  // namespace pagoda::text
