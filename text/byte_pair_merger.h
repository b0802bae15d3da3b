#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/pair_merger.h"

namespace pagoda::text {

// Byte-level BPE inside one piece: starting from single bytes, the adjacent pair with the lowest
// rank is merged, the leftmost of equals, until none is left. A byte without a token of its own is
// dropped before merging, as the models' own tokenizers do. Time: n log n in the piece's length,
// whatever its bytes. Filled by its owner, then const; threads: any, each with its own Scratch.
class BytePairMerger {
 public:
  static constexpr base::TokenId kNoToken = PairMerger::kNoToken;
  using Scratch = PairMerger::Scratch;

  explicit BytePairMerger(std::size_t num_merges);

  // The token of a single byte.
  void SetByteToken(unsigned char byte, base::TokenId token) { byte_tokens_[byte] = token; }
  // The merge of the next rank. Returns: false when the pair already has one.
  bool AddMerge(base::TokenId left, base::TokenId right, base::TokenId result);

  // Appends the tokens of `piece`. Requires: shorter than 4 GiB.
  void Encode(std::string_view piece, Scratch& scratch, std::vector<base::TokenId>& tokens) const;

 private:
  std::array<base::TokenId, 256> byte_tokens_;
  PairMerger merger_;
  std::uint32_t num_merges_ = 0;
};

}  // namespace pagoda::text
