#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/request_slab.h"

namespace pagoda::scheduler {

// The waiting requests of one tenant, in the order in which they are to be admitted; the head is
// never bypassed, but for being paused. Preempted ones stand first, by age; then never-admitted
// ones by priority (lower first), deadline, arrival, where one that younger requests overtook
// kMaxOvertakes times goes before all other priorities. Owner: SchedulerState. A waiting request
// holds no block and no slot.
class TenantQueue {
 public:
  static constexpr std::int32_t kMaxOvertakes = 16;

  TenantQueue(RequestSlab& requests, std::size_t capacity);

  std::size_t size() const { return order_.size(); }
  bool empty() const { return order_.empty(); }
  RequestIndex at(std::size_t position) const { return order_[position].index; }
  // The first request that is not paused.
  std::optional<RequestIndex> Head() const;

  void Insert(RequestIndex index);
  void Remove(RequestIndex index);
  // `admitted` has left for its first admission: counts the older never-admitted requests it
  // overtook.
  void CountOvertakes(RequestIndex admitted);

  void CheckInvariants() const;

 private:
  friend struct SnapshotAccess;
  struct Waiting {
    RequestIndex index;
    // Its id, or kNeverOvertaken of one that was admitted before: whom it overtook is asked at
    // every admission of all that wait, who lie far apart.
    base::RequestId arrival;
  };
  static constexpr base::RequestId kNeverOvertaken{~std::uint64_t{0}};
  bool GoesBefore(RequestIndex a, RequestIndex b) const;

  RequestSlab& requests_;
  std::vector<Waiting> order_;
};

}  // namespace pagoda::scheduler
