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
  for (const Waiting& waiting : order_) {
    if (!requests_[waiting.index].paused) return waiting.index;
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
  const auto place = std::ranges::upper_bound(
      order_, index, [this](RequestIndex a, RequestIndex b) { return GoesBefore(a, b); },
      &Waiting::index);
  const LiveRequest& live = requests_[index];
  order_.insert(place, {index, live.was_admitted ? kNeverOvertaken : live.request->id});
}

void TenantQueue::Remove(RequestIndex index) {
  const auto place = std::ranges::find(order_, index, &Waiting::index);
  PAGODA_CHECK(place != order_.end());
  order_.erase(place);
}

void TenantQueue::CountOvertakes(RequestIndex admitted) {
  const base::RequestId youngest = requests_[admitted].request->id;
  for (std::size_t position = 0; position < order_.size(); ++position) {
    const auto [index, arrival] = order_[position];
    if (arrival > youngest) continue;
    if (++requests_[index].times_overtaken != kMaxOvertakes) continue;
    // It moves towards the front, so the positions still to visit stay as they are.
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position));
    Insert(index);
  }
}

void TenantQueue::CheckInvariants() const {
  for (std::size_t position = 0; position < order_.size(); ++position) {
    PAGODA_CHECK(requests_[at(position)].phase == LiveRequest::Phase::kWaiting);
    PAGODA_CHECK(position == 0 || !GoesBefore(at(position), at(position - 1)));
  }
}

}  // namespace pagoda::scheduler
