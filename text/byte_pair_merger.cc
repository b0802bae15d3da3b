#include "text/byte_pair_merger.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"

namespace pagoda::text {
namespace {

// Up to here looking at every pair for each merge is quicker than a heap, and its cost is bounded
// by this constant.
constexpr std::size_t kScanTokens = 48;
constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

std::uint64_t PairOf(base::TokenId left, base::TokenId right) {
  return (std::uint64_t{left} << 32) | right;
}

}  // namespace

BytePairMerger::BytePairMerger(std::size_t num_merges)
    : merges_(std::bit_ceil(std::max<std::size_t>(2 * num_merges, 2))) {
  byte_tokens_.fill(kNoToken);
}

bool BytePairMerger::AddMerge(base::TokenId left, base::TokenId right, base::TokenId result) {
  PAGODA_CHECK(2 * std::size_t{num_merges_} < merges_.size());
  Merge& slot = merges_[SlotOf(PairOf(left, right))];
  if (slot.rank != kNoRank) return false;
  slot = {.pair = PairOf(left, right), .rank = num_merges_++, .result = result};
  return true;
}

const BytePairMerger::Merge& BytePairMerger::FindMerge(base::TokenId left,
                                                       base::TokenId right) const {
  return merges_[SlotOf(PairOf(left, right))];
}

std::size_t BytePairMerger::SlotOf(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t index = ((pair * 0x9E3779B97F4A7C15ULL) >> 32) & mask;
  while (merges_[index].rank != kNoRank && merges_[index].pair != pair) index = (index + 1) & mask;
  return index;
}

void BytePairMerger::Encode(std::string_view piece, Scratch& scratch,
                            std::vector<base::TokenId>& tokens) const {
  PAGODA_CHECK(piece.size() < kEnd);
  scratch.tokens.clear();
  for (const char byte : piece) {
    const base::TokenId token = byte_tokens_[static_cast<unsigned char>(byte)];
    if (token != kNoToken) scratch.tokens.push_back(token);
  }
  if (scratch.tokens.size() <= kScanTokens) {
    MergeByScan(scratch);
  } else {
    MergeByHeap(scratch);
  }
  tokens.insert(tokens.end(), scratch.tokens.begin(), scratch.tokens.end());
}

void BytePairMerger::MergeByScan(Scratch& scratch) const {
  std::vector<base::TokenId>& tokens = scratch.tokens;
  if (tokens.size() < 2) return;
  std::vector<std::uint32_t>& ranks = scratch.pair_rank;
  ranks.resize(tokens.size() - 1);
  for (std::uint32_t i = 0; i < ranks.size(); ++i) RankPair(scratch, i);
  while (!ranks.empty()) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());
    if (*lowest == kNoRank) return;
    const auto i = static_cast<std::uint32_t>(lowest - ranks.begin());
    tokens[i] = FindMerge(tokens[i], tokens[i + 1]).result;
    tokens.erase(tokens.begin() + i + 1);
    ranks.erase(lowest);
    if (i > 0) RankPair(scratch, i - 1);
    if (i < ranks.size()) RankPair(scratch, i);
  }
}

void BytePairMerger::RankPair(Scratch& scratch, std::uint32_t left) const {
  scratch.pair_rank[left] = FindMerge(scratch.tokens[left], scratch.tokens[left + 1]).rank;
}

// The tokens form a doubly linked list over their first positions; the heap holds (rank, position
// of the left token). A pair that has changed since it was pushed no longer has the rank it was
// pushed with: tokens only grow, so a pair at the same place never spells the same bytes twice.
void BytePairMerger::MergeByHeap(Scratch& scratch) const {
  const auto count = static_cast<std::uint32_t>(scratch.tokens.size());
  scratch.next.resize(count);
  scratch.previous.resize(count);
  scratch.pair_rank.assign(count, kNoRank);
  scratch.heap.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    scratch.previous[i] = i == 0 ? kEnd : i - 1;
    scratch.next[i] = i + 1 == count ? kEnd : i + 1;
  }
  for (std::uint32_t i = 0; i < count; ++i) PushPair(scratch, i);
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
    const std::uint64_t lowest = scratch.heap.back();
    scratch.heap.pop_back();
    const auto left = static_cast<std::uint32_t>(lowest);
    if (scratch.pair_rank[left] != lowest >> 32) continue;
    const std::uint32_t right = scratch.next[left];
    scratch.tokens[left] = FindMerge(scratch.tokens[left], scratch.tokens[right]).result;
    scratch.pair_rank[right] = kNoRank;
    scratch.next[left] = scratch.next[right];
    if (scratch.next[left] != kEnd) scratch.previous[scratch.next[left]] = left;
    PushPair(scratch, left);
    if (scratch.previous[left] != kEnd) PushPair(scratch, scratch.previous[left]);
  }
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i != kEnd && count > 0; i = scratch.next[i]) {
    scratch.tokens[kept++] = scratch.tokens[i];
  }
  scratch.tokens.resize(kept);
}

void BytePairMerger::PushPair(Scratch& scratch, std::uint32_t left) const {
  const std::uint32_t right = scratch.next[left];
  if (right == kEnd) {
    scratch.pair_rank[left] = kNoRank;
    return;
  }
  const std::uint32_t rank = FindMerge(scratch.tokens[left], scratch.tokens[right]).rank;
  scratch.pair_rank[left] = rank;
  if (rank == kNoRank) return;
  scratch.heap.push_back((std::uint64_t{rank} << 32) | left);
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

}  // namespace pagoda::text
