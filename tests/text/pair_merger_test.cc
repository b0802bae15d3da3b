#include "text/pair_merger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace pagoda::text {
namespace {

using base::TokenId;
using Pairs = std::map<std::pair<TokenId, TokenId>, PairMerger::Result>;

// The definition, word by word: of the pairs present the one with the lowest rank is merged, the
// leftmost of equals, one at a time.
std::vector<TokenId> MergedByDefinition(const Pairs& pairs, std::vector<TokenId> tokens) {
  while (true) {
    std::size_t best = tokens.size();
    PairMerger::Result lowest{.rank = PairMerger::kNoRank};
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto pair = pairs.find({tokens[i], tokens[i + 1]});
      if (pair == pairs.end() || pair->second.rank >= lowest.rank) continue;
      lowest = pair->second;
      best = i;
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = lowest.token;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Few ranks for many pairs, and tokens that many pairs lead to, so that an entry of the heap often
// has the rank of another pair at the same place.
TEST(PairMerger, PairsThatShareARankMergeFromTheLeft) {
  PairMerger::Scratch scratch;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    constexpr TokenId kTokens = 9;
    Pairs pairs;
    PairMerger merger(60);
    for (int i = 0; i < 60; ++i) {
      const std::pair<TokenId, TokenId> pair(random() % kTokens, random() % kTokens);
      const PairMerger::Result result{.rank = static_cast<std::uint32_t>(random() % 3),
                                      .token = static_cast<TokenId>(random() % kTokens)};
      if (merger.Add(pair.first, pair.second, result)) pairs[pair] = result;
    }
    for (const std::size_t length : {0, 1, 2, 5, 47, 48, 49, 50, 90, 140}) {
      std::vector<TokenId> tokens(length);
      for (TokenId& token : tokens) token = static_cast<TokenId>(random() % kTokens);
      scratch.tokens = tokens;
      merger.Merge(scratch);
      ASSERT_EQ(scratch.tokens, MergedByDefinition(pairs, tokens)) << length;
    }
  }
}

TEST(PairMerger, APairLeadsToOneResult) {
  PairMerger merger(2);
  EXPECT_TRUE(merger.Add(0, 1, {.rank = 0, .token = 2}));
  EXPECT_FALSE(merger.Add(0, 1, {.rank = 1, .token = 3}));
}

}  // namespace
}  // namespace pagoda::text
