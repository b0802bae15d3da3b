#include "text/byte_pair_merger.h"

namespace pagoda::text {

BytePairMerger::BytePairMerger(std::size_t num_merges) : merger_(num_merges) {
  byte_tokens_.fill(kNoToken);
}

bool BytePairMerger::AddMerge(base::TokenId left, base::TokenId right, base::TokenId result) {
  if (!merger_.Add(left, right, {.rank = num_merges_, .token = result})) return false;
  ++num_merges_;
  return true;
}

void BytePairMerger::Encode(std::string_view piece, Scratch& scratch,
                            std::vector<base::TokenId>& tokens) const {
  scratch.tokens.clear();
  for (const char byte : piece) {
    const base::TokenId token = byte_tokens_[static_cast<unsigned char>(byte)];
    if (token != kNoToken) scratch.tokens.push_back(token);
  }
  merger_.Merge(scratch);
  tokens.insert(tokens.end(), scratch.tokens.begin(), scratch.tokens.end());
}

}  // namespace pagoda::text
