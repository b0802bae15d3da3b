#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/ids.h"

namespace pagoda::text {

// Merges adjacent pairs of symbols: the pair with the lowest rank first, the leftmost of equals,
// until none is left. A symbol is a token, or a character that is none and only tokens are made of.
// Time: n log n in the number of symbols, whatever they are. Filled by its owner, then const;
// threads: any, each with its own Scratch.
class PairMerger {
 public:
  static constexpr base::TokenId kNoToken = std::numeric_limits<base::TokenId>::max();

  // Buffers of one thread, kept between pieces so that long ones do not allocate each time.
  struct Scratch {
    std::vector<base::TokenId> tokens;
    std::vector<std::uint32_t> next, previous, pair_rank;
    std::vector<std::uint64_t> heap;
  };
  // Where a pair leads. Pairs that make the same token may share a rank.
  struct Result {
    std::uint32_t rank = 0;  // below kNoRank
    base::TokenId token = kNoToken;
  };
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  // Room for `num_pairs` pairs.
  explicit PairMerger(std::size_t num_pairs);

  // Returns: false when the pair already leads somewhere.
  bool Add(base::TokenId left, base::TokenId right, Result result);

  // Merges `scratch.tokens`, the symbols of one piece, in place. Requires: fewer than 2^32 - 1.
  void Merge(Scratch& scratch) const;

 private:
  struct Slot {
    std::uint64_t pair = 0;
    Result result = {.rank = kNoRank};  // kNoRank: an empty slot
  };

  const Result& Find(base::TokenId left, base::TokenId right) const;
  std::size_t SlotOf(std::uint64_t pair) const;
  void MergeByScan(Scratch& scratch) const;
  void MergeByHeap(Scratch& scratch) const;
  void RankPair(Scratch& scratch, std::uint32_t left) const;
  void PushPair(Scratch& scratch, std::uint32_t left) const;

  std::vector<Slot> slots_;  // open addressing, at most half full
  std::size_t num_pairs_ = 0;
};

}  // namespace pagoda::text
