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
class RequestSlab {
 public:
  explicit RequestSlab(std::size_t capacity);

  std::size_t capacity() const { return requests_.size(); }
  std::size_t num_live() const { return requests_.size() - free_.size(); }

  // Requires: the id is not live, and there is room.
  RequestIndex Add(NewRequest request);
  // Gives the request back. Requires: the place is taken.
  NewRequest Remove(RequestIndex index);

  std::optional<RequestIndex> Find(base::RequestId id) const;
  LiveRequest& operator[](RequestIndex index) { return requests_[index.value()]; }
  const LiveRequest& operator[](RequestIndex index) const { return requests_[index.value()]; }
  // Vacant places included.
  std::span<const LiveRequest> all() const { return requests_; }

 private:
  friend struct SnapshotAccess;
  std::vector<LiveRequest> requests_;
  std::vector<RequestIndex> free_;
  HashChains by_id_;
};

}  // namespace pagoda::scheduler
