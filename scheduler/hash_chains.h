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
      : heads_(std::bit_ceil(kHeadsPerItem * num_items + 1), kEnd), links_(num_items) {}

  std::uint32_t First(std::uint64_t hash) const { return heads_[Bucket(hash)]; }
  std::uint32_t Next(std::uint32_t item) const { return links_[item].next; }

  void PushFront(std::uint64_t hash, std::uint32_t item) {
    std::uint32_t& head = heads_[Bucket(hash)];
    PAGODA_CHECK(head != item);
    links_[item] = {.next = head, .previous = kEnd};
    if (head != kEnd) links_[head].previous = item;
    head = item;
  }

  // Requires: `item` was pushed with `hash` and not removed since.
  void Remove(std::uint64_t hash, std::uint32_t item) {
    const auto [next, previous] = links_[item];
    std::uint32_t& link = previous == kEnd ? heads_[Bucket(hash)] : links_[previous].next;
    PAGODA_CHECK(link == item);
    link = next;
    if (next != kEnd) links_[next].previous = previous;
    links_[item] = {};
  }

  // Have the processor fetch the item's place in its chain, or where the chain of a hash begins.
  void Fetch(std::uint32_t item) const { __builtin_prefetch(&links_[item], /*rw=*/1); }
  void FetchFirst(std::uint64_t hash) const { __builtin_prefetch(&heads_[Bucket(hash)], 1); }

 private:
  friend struct SnapshotAccess;
  // Most chains are empty: an item that is looked for in vain costs one look.
  static constexpr std::size_t kHeadsPerItem = 4;
  struct Link {
    std::uint32_t next = kEnd, previous = kEnd;
  };
  std::size_t Bucket(std::uint64_t hash) const { return hash & (heads_.size() - 1); }

  std::vector<std::uint32_t> heads_;
  std::vector<Link> links_;
};

}  // namespace pagoda::scheduler
