#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "text/pair_merger.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// The merges that a vocabulary of scored tokens implies: any two neighbours whose spellings,
// joined, are a normal token become it, the one of the highest score first. Plain data.
struct ScorePairs {
  struct Pair {
    base::TokenId left = 0, right = 0;
    PairMerger::Result result;  // tokens of one score share a rank
  };
  // Characters that have no token of their own but are part of one; numbered after the tokens.
  std::vector<std::string> bare_characters;
  std::vector<Pair> pairs;
};

// The longest spelling of a token that merging makes: each place to cut it in two is looked up.
inline constexpr std::size_t kMaxMergedBytes = 256;

// Errors (InvalidArgument): scores that do not match the tokens, a score that is no number, a token
// too long to be merged or not UTF-8, an unused token that merging would make, a user-defined token
// with a space mark (whether it means a space or the mark itself is not known).
absl::StatusOr<ScorePairs> FindScorePairs(const Vocabulary& vocabulary);

}  // namespace pagoda::text
