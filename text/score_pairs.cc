#include "text/score_pairs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/space_marks.h"
#include "text/token_table.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Kind = Vocabulary::TokenKind;

bool IsMerged(Kind kind) { return kind == Kind::kNormal || kind == Kind::kUnused; }

absl::Status Refuse(TokenId id, std::string_view spelling, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("token ", id, " ('", base::ToAbsl(spelling), "') ", base::ToAbsl(why)));
}

absl::Status CheckTokens(const Vocabulary& vocabulary) {
  if (vocabulary.scores.size() != vocabulary.tokens.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the vocabulary has ", vocabulary.tokens.size(),
                                                   " tokens and ", vocabulary.scores.size(),
                                                   " scores"));
  }
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& spelling = vocabulary.tokens[id];
    const Kind kind = vocabulary.kinds[id];
    if (kind == Kind::kUserDefined && spelling.find(kSpaceMark) != std::string::npos) {
      return Refuse(id, spelling, "is user-defined and has a space mark, which is not built");
    }
    if (!IsMerged(kind)) continue;
    if (!std::isfinite(vocabulary.scores[id])) {
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " has no finite score"));
    }
    if (spelling.size() > kMaxMergedBytes) {
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " has ", spelling.size(),
                                                     " bytes; at most ", kMaxMergedBytes,
                                                     " are possible in one that is merged"));
    }
    if (FirstBadUtf8(spelling).has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " is not valid UTF-8"));
    }
  }
  return absl::OkStatus();
}

std::size_t FirstLength(std::string_view text) { return ReadUtf8(text).length; }

std::vector<std::string> FindBareCharacters(const Vocabulary& vocabulary) {
  std::set<std::string_view> alone, within;
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] != Kind::kNormal) continue;
    std::string_view rest = vocabulary.tokens[id];
    if (FirstLength(rest) == rest.size()) {
      alone.insert(rest);
      continue;
    }
    for (; !rest.empty(); rest.remove_prefix(FirstLength(rest))) {
      within.insert(rest.substr(0, FirstLength(rest)));
    }
  }
  std::vector<std::string> bare;
  for (const std::string_view character : within) {
    if (!alone.contains(character)) bare.emplace_back(character);
  }
  return bare;
}

// Ranks by score, the highest first.
class Ranks {
 public:
  explicit Ranks(const Vocabulary& vocabulary) {
    for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
      if (vocabulary.kinds[id] == Kind::kNormal) scores_.push_back(vocabulary.scores[id]);
    }
    std::ranges::sort(scores_, std::greater<>());
    scores_.erase(std::ranges::unique(scores_).begin(), scores_.end());
  }
  std::uint32_t Of(float score) const {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(scores_, score, std::greater<>()) -
                                      scores_.begin());
  }

 private:
  std::vector<float> scores_;
};

TokenTable SymbolsByName(const Vocabulary& vocabulary, std::span<const std::string> bare) {
  const auto num_tokens = static_cast<TokenId>(vocabulary.tokens.size());
  TokenTable names(num_tokens + bare.size());
  for (TokenId id = 0; id < num_tokens; ++id) {
    if (vocabulary.kinds[id] != Kind::kNormal) continue;
    names.SetBytes(id, vocabulary.tokens[id]);
    names.MakeFindable(id);
  }
  for (TokenId i = 0; i < bare.size(); ++i) {
    names.SetBytes(num_tokens + i, bare[i]);
    names.MakeFindable(num_tokens + i);
  }
  return names;
}

}  // namespace

absl::StatusOr<ScorePairs> FindScorePairs(const Vocabulary& vocabulary) {
  PAGODA_RETURN_IF_ERROR(CheckTokens(vocabulary));
  ScorePairs found{.bare_characters = FindBareCharacters(vocabulary), .pairs = {}};
  const TokenTable symbols = SymbolsByName(vocabulary, found.bare_characters);
  const Ranks ranks(vocabulary);
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view spelling = vocabulary.tokens[id];
    if (!IsMerged(vocabulary.kinds[id]) || spelling.empty()) continue;
    const bool is_unused = vocabulary.kinds[id] == Kind::kUnused;
    bool is_reached = is_unused && FirstLength(spelling) == spelling.size();
    for (std::size_t cut = FirstLength(spelling); cut < spelling.size();
         cut += FirstLength(spelling.substr(cut))) {
      const auto left = symbols.Find(spelling.substr(0, cut));
      const auto right = symbols.Find(spelling.substr(cut));
      if (!left.has_value() || !right.has_value()) continue;
      is_reached = true;
      if (is_unused) break;
      found.pairs.push_back({.left = *left,
                             .right = *right,
                             .result = {.rank = ranks.Of(vocabulary.scores[id]), .token = id}});
    }
    if (is_unused && is_reached) {
      return Refuse(id, spelling, "is unused but would be made by merging, which is not built");
    }
  }
  return found;
}

}  // namespace pagoda::text
