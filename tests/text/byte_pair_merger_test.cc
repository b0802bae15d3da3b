#include "text/byte_pair_merger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace pagoda::text {
namespace {

using base::TokenId;
using Pair = std::pair<TokenId, TokenId>;

// Random merges over the letters a to d, each of two tokens that exist by then.
struct RandomMerges {
  std::vector<Pair> pairs;  // by rank; merge i makes token 4 + i
  BytePairMerger merger;

  RandomMerges(unsigned seed, std::size_t count) : merger(count) {
    std::mt19937 random(seed);
    for (TokenId byte = 0; byte < 4; ++byte) {
      merger.SetByteToken(static_cast<unsigned char>('a' + byte), byte);
    }
    while (pairs.size() < count) {
      const auto tokens = static_cast<TokenId>(4 + pairs.size());
      const Pair pair(random() % tokens, random() % tokens);
      if (merger.AddMerge(pair.first, pair.second, tokens)) pairs.push_back(pair);
    }
  }
};

// The definition, word by word: the lowest rank present is merged, the leftmost first, one at a
// time.
std::vector<TokenId> MergedByDefinition(const std::vector<Pair>& pairs, const std::string& piece) {
  std::map<Pair, TokenId> result;
  for (std::size_t i = 0; i < pairs.size(); ++i) result[pairs[i]] = static_cast<TokenId>(4 + i);
  std::vector<TokenId> tokens;
  for (const char c : piece) {
    if (c >= 'a' && c <= 'd') tokens.push_back(static_cast<TokenId>(c - 'a'));
  }
  while (true) {
    std::size_t best = tokens.size();
    TokenId lowest = BytePairMerger::kNoToken;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto merge = result.find({tokens[i], tokens[i + 1]});
      if (merge == result.end() || merge->second >= lowest) continue;
      lowest = merge->second;
      best = i;
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = lowest;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BytePairMerger, PiecesOfEveryLengthMergeAsTheDefinitionSays) {
  BytePairMerger::Scratch scratch;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const RandomMerges merges(seed, 5 + seed % 60);
    for (std::size_t length = 0; length < 120; length += 1 + seed % 3) {
      std::string piece;
      while (piece.size() < length) piece.push_back(static_cast<char>('a' + random() % 4));
      std::vector<TokenId> tokens;
      merges.merger.Encode(piece, scratch, tokens);
      ASSERT_EQ(tokens, MergedByDefinition(merges.pairs, piece)) << piece;
    }
  }
}

TEST(BytePairMerger, EqualNeighboursMergeFromTheLeft) {
  BytePairMerger merger(1);
  merger.SetByteToken('a', 0);
  ASSERT_TRUE(merger.AddMerge(0, 0, 1));
  BytePairMerger::Scratch scratch;
  for (const std::size_t length : {3, 47, 49, 101}) {
    std::vector<TokenId> tokens;
    merger.Encode(std::string(length, 'a'), scratch, tokens);
    std::vector<TokenId> expected(length / 2, 1);
    expected.push_back(0);
    EXPECT_EQ(tokens, expected);
  }
}

TEST(BytePairMerger, AByteWithoutATokenIsDroppedAndItsNeighboursMerge) {
  BytePairMerger merger(1);
  merger.SetByteToken('a', 0);
  merger.SetByteToken('b', 1);
  ASSERT_TRUE(merger.AddMerge(0, 1, 2));
  BytePairMerger::Scratch scratch;
  std::vector<TokenId> tokens = {9};
  merger.Encode(
      "a\x04"
      "b",
      scratch, tokens);
  EXPECT_EQ(tokens, (std::vector<TokenId>{9, 2}));
  tokens.clear();
  merger.Encode("\x04\x05", scratch, tokens);
  EXPECT_TRUE(tokens.empty());
}

TEST(BytePairMerger, APairHasOneMerge) {
  BytePairMerger merger(2);
  EXPECT_TRUE(merger.AddMerge(0, 1, 2));
  EXPECT_FALSE(merger.AddMerge(0, 1, 3));
}

}  // namespace
}  // namespace pagoda::text
