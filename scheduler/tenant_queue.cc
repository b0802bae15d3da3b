#include "scheduler/tenant_queue.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {

TenantQueue::TenantQueue(RequestSlab& requests, std::size_t capacity) : requests_(requests) {
  order_.reserve(capacity);
}

std::optional<RequestIndex> TenantQueue::Head() const {
  for (const RequestIndex index : order_) {
    if (!requests_[index].paused) return index;
  }
  return std::nullopt;
}

bool TenantQueue::GoesBefore(RequestIndex a, RequestIndex b) const {
  const auto rank = [this](RequestIndex index) {
    const LiveRequest& live = requests_[index];
    const NewRequest& request = *live.request;
    if (live.was_admitted && !PAGODA_MUTANT(kPreemptedGoesLast)) {
      return std::tuple(0, false, 0, base::Instant(), request.id);
    }
    const bool was_overtaken =
        live.times_overtaken >= kMaxOvertakes && !PAGODA_MUTANT(kOvertakenForEver);
    return std::tuple(1, !was_overtaken, was_overtaken ? 0 : request.priority(),
                      was_overtaken ? base::Instant() : request.deadline(), request.id);
  };
  return rank(a) < rank(b);
}

void TenantQueue::Insert(RequestIndex index) {
  PAGODA_CHECK(order_.size() < order_.capacity());
  const auto place =
      std::upper_bound(order_.begin(), order_.end(), index,
                       [this](RequestIndex a, RequestIndex b) { return GoesBefore(a, b); });
  order_.insert(place, index);
}

void TenantQueue::Remove(RequestIndex index) {
  const auto place = std::find(order_.begin(), order_.end(), index);
  PAGODA_CHECK(place != order_.end());
  order_.erase(place);
}

void TenantQueue::CountOvertakes(RequestIndex admitted) {
  const base::RequestId youngest = requests_[admitted].request->id;
  for (std::size_t position = 0; position < order_.size(); ++position) {
    const RequestIndex index = order_[position];
    LiveRequest& live = requests_[index];
    if (live.was_admitted || live.request->id > youngest) continue;
    if (++live.times_overtaken != kMaxOvertakes) continue;
    // It moves towards the front, so the positions still to visit stay as they are.
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position));
    Insert(index);
  }
}

void TenantQueue::CheckInvariants() const {
  for (std::size_t position = 0; position < order_.size(); ++position) {
    PAGODA_CHECK(requests_[order_[position]].phase == LiveRequest::Phase::kWaiting);
    PAGODA_CHECK(position == 0 || !GoesBefore(order_[position], order_[position - 1]));
  }
}

}  // namespace pagoda::scheduler
