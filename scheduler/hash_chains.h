#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace pagoda::scheduler {

// A hash table of chains over the items 0 ... num_items - 1, with the links in arrays of their own:
// insertion at the front and removal are O(1) and never allocate. Knows hashes only; the user
// compares keys while walking a chain. Invariant: an item is in at most one chain, newest first.
class HashChains {
 public:
  static constexpr std::uint32_t kEnd = 0xffffffffu;

  explicit HashChains(std::size_t num_items)
      : heads_(std::bit_ceil(num_items + 1), kEnd),
        next_(num_items, kEnd),
        prev_(num_items, kEnd) {}

  std::uint32_t First(std::uint64_t hash) const { return heads_[Bucket(hash)]; }
  std::uint32_t Next(std::uint32_t item) const { return next_[item]; }

  void PushFront(std::uint64_t hash, std::uint32_t item) {
    std::uint32_t& head = heads_[Bucket(hash)];
    PAGODA_CHECK(head != item);
    next_[item] = head;
    prev_[item] = kEnd;
    if (head != kEnd) prev_[head] = item;
    head = item;
  }

  // Requires: `item` was pushed with `hash` and not removed since.
  void Remove(std::uint64_t hash, std::uint32_t item) {
    std::uint32_t& link = prev_[item] == kEnd ? heads_[Bucket(hash)] : next_[prev_[item]];
    PAGODA_CHECK(link == item);
    link = next_[item];
    if (next_[item] != kEnd) prev_[next_[item]] = prev_[item];
    next_[item] = prev_[item] = kEnd;
  }

 private:
  friend struct SnapshotAccess;
  std::size_t Bucket(std::uint64_t hash) const { return hash & (heads_.size() - 1); }

  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> next_, prev_;
};

}  // namespace pagoda::scheduler
