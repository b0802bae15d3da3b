#include "text/pair_merger.h"

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

PairMerger::PairMerger(std::size_t num_pairs)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * num_pairs, 2))) {}

bool PairMerger::Add(base::TokenId left, base::TokenId right, Result result) {
  PAGODA_CHECK(2 * num_pairs_ < slots_.size());
  PAGODA_CHECK(result.rank != kNoRank);
  Slot& slot = slots_[SlotOf(PairOf(left, right))];
  if (slot.result.rank != kNoRank) return false;
  slot = {.pair = PairOf(left, right), .result = result};
  ++num_pairs_;
  return true;
}

const PairMerger::Result& PairMerger::Find(base::TokenId left, base::TokenId right) const {
  return slots_[SlotOf(PairOf(left, right))].result;
}

std::size_t PairMerger::SlotOf(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t index = ((pair * 0x9E3779B97F4A7C15ULL) >> 32) & mask;
  while (slots_[index].result.rank != kNoRank && slots_[index].pair != pair) {
    index = (index + 1) & mask;
  }
  return index;
}

void PairMerger::Merge(Scratch& scratch) const {
  PAGODA_CHECK(scratch.tokens.size() < kEnd);
  if (scratch.tokens.size() <= kScanTokens) {
    MergeByScan(scratch);
  } else {
    MergeByHeap(scratch);
  }
}

void PairMerger::MergeByScan(Scratch& scratch) const {
  std::vector<base::TokenId>& tokens = scratch.tokens;
  if (tokens.size() < 2) return;
  std::vector<std::uint32_t>& ranks = scratch.pair_rank;
  ranks.resize(tokens.size() - 1);
  for (std::uint32_t i = 0; i < ranks.size(); ++i) RankPair(scratch, i);
  while (!ranks.empty()) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());
    if (*lowest == kNoRank) return;
    const auto i = static_cast<std::uint32_t>(lowest - ranks.begin());
    tokens[i] = Find(tokens[i], tokens[i + 1]).token;
    tokens.erase(tokens.begin() + i + 1);
    ranks.erase(lowest);
    if (i > 0) RankPair(scratch, i - 1);
    if (i < ranks.size()) RankPair(scratch, i);
  }
}

void PairMerger::RankPair(Scratch& scratch, std::uint32_t left) const {
  scratch.pair_rank[left] = Find(scratch.tokens[left], scratch.tokens[left + 1]).rank;
}

// The tokens form a doubly linked list over their first positions; the heap holds (rank, position
// of the left token). An entry counts if the pair that is there now has its rank: then it is what
// is to be merged next, whether it was pushed for this pair or for one before it.
void PairMerger::MergeByHeap(Scratch& scratch) const {
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
    scratch.tokens[left] = Find(scratch.tokens[left], scratch.tokens[right]).token;
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

void PairMerger::PushPair(Scratch& scratch, std::uint32_t left) const {
  const std::uint32_t right = scratch.next[left];
  if (right == kEnd) {
    scratch.pair_rank[left] = kNoRank;
    return;
  }
  const std::uint32_t rank = Find(scratch.tokens[left], scratch.tokens[right]).rank;
  scratch.pair_rank[left] = rank;
  if (rank == kNoRank) return;
  scratch.heap.push_back((std::uint64_t{rank} << 32) | left);
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

}  // namespace pagoda::text
