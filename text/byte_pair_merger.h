#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace pagoda::text {

// Byte-level BPE inside one piece: starting from single bytes, the adjacent pair with the lowest
// rank is merged, the leftmost of equals, until none is left. A byte without a token of its own is
// dropped before merging, as the models' own tokenizers do. Time: n log n in the piece's length,
// whatever its bytes. Filled by its owner, then const; threads: any, each with its own Scratch.
class BytePairMerger {
 public:
  static constexpr base::TokenId kNoToken = std::numeric_limits<base::TokenId>::max();

  // Buffers of one thread, kept between pieces so that long ones do not allocate each time.
  struct Scratch {
    std::vector<base::TokenId> tokens;
    std::vector<std::uint32_t> next, previous, pair_rank;
    std::vector<std::uint64_t> heap;
  };

  explicit BytePairMerger(std::size_t num_merges);

  // The token of a single byte.
  void SetByteToken(unsigned char byte, base::TokenId token) { byte_tokens_[byte] = token; }
  // The merge of the next rank. Returns: false when the pair already has one.
  bool AddMerge(base::TokenId left, base::TokenId right, base::TokenId result);

  // Appends the tokens of `piece`. Requires: shorter than 4 GiB.
  void Encode(std::string_view piece, Scratch& scratch, std::vector<base::TokenId>& tokens) const;

 private:
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
  struct Merge {
    std::uint64_t pair = 0;
    std::uint32_t rank = kNoRank;  // kNoRank: an empty slot
    base::TokenId result = kNoToken;
  };

  const Merge& FindMerge(base::TokenId left, base::TokenId right) const;
  std::size_t SlotOf(std::uint64_t pair) const;
  void MergeByScan(Scratch& scratch) const;
  void MergeByHeap(Scratch& scratch) const;
  void RankPair(Scratch& scratch, std::uint32_t left) const;
  void PushPair(Scratch& scratch, std::uint32_t left) const;

  std::array<base::TokenId, 256> byte_tokens_;
  std::vector<Merge> merges_;  // open addressing, at most half full
  std::uint32_t num_merges_ = 0;
};

}  // namespace pagoda::text
