#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/hash_chains.h"
#include "scheduler/sequence.h"

namespace pagoda::scheduler {

// All live requests, in a fixed array, found by place or by RequestId. Never allocates after
// construction.
class SequenceSlab {
 public:
  explicit SequenceSlab(std::size_t capacity);

  std::size_t capacity() const { return sequences_.size(); }
  std::size_t num_live() const { return sequences_.size() - free_.size(); }

  // Requires: the id is not live, and there is room.
  SequenceIndex Add(NewRequest request);
  // Gives the request back. Requires: the place is taken.
  NewRequest Remove(SequenceIndex index);

  std::optional<SequenceIndex> Find(base::RequestId id) const;
  Sequence& operator[](SequenceIndex index) { return sequences_[index.value()]; }
  const Sequence& operator[](SequenceIndex index) const { return sequences_[index.value()]; }
  // Vacant places included.
  std::span<const Sequence> all() const { return sequences_; }

 private:
  std::vector<Sequence> sequences_;
  std::vector<SequenceIndex> free_;
  HashChains by_id_;
};

}  // namespace pagoda::scheduler
