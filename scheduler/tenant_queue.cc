#include "scheduler/tenant_queue.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace pagoda::scheduler {

TenantQueue::TenantQueue(SequenceSlab& sequences, std::size_t capacity) : sequences_(sequences) {
  order_.reserve(capacity);
}

std::optional<SequenceIndex> TenantQueue::Head() const {
  for (const SequenceIndex index : order_) {
    if (!sequences_[index].paused) return index;
  }
  return std::nullopt;
}

bool TenantQueue::GoesBefore(SequenceIndex a, SequenceIndex b) const {
  const auto rank = [this](SequenceIndex index) {
    const Sequence& sequence = sequences_[index];
    const NewRequest& request = *sequence.request;
    if (sequence.was_admitted) {
      return std::tuple(0, false, 0, base::Instant(), request.id);
    }
    const bool was_overtaken = sequence.times_overtaken >= kMaxOvertakes;
    return std::tuple(1, !was_overtaken, was_overtaken ? 0 : request.priority(),
                      was_overtaken ? base::Instant() : request.deadline(), request.id);
  };
  return rank(a) < rank(b);
}

void TenantQueue::Insert(SequenceIndex index) {
  PAGODA_CHECK(order_.size() < order_.capacity());
  const auto place =
      std::upper_bound(order_.begin(), order_.end(), index,
                       [this](SequenceIndex a, SequenceIndex b) { return GoesBefore(a, b); });
  order_.insert(place, index);
}

void TenantQueue::Remove(SequenceIndex index) {
  const auto place = std::find(order_.begin(), order_.end(), index);
  PAGODA_CHECK(place != order_.end());
  order_.erase(place);
}

void TenantQueue::CountOvertakes(SequenceIndex admitted) {
  const base::RequestId youngest = sequences_[admitted].request->id;
  for (std::size_t position = 0; position < order_.size(); ++position) {
    const SequenceIndex index = order_[position];
    Sequence& sequence = sequences_[index];
    if (sequence.was_admitted || sequence.request->id > youngest) continue;
    if (++sequence.times_overtaken != kMaxOvertakes) continue;
    // It moves towards the front, so the positions still to visit stay as they are.
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position));
    Insert(index);
  }
}

void TenantQueue::CheckInvariants() const {
  for (std::size_t position = 0; position < order_.size(); ++position) {
    PAGODA_CHECK(sequences_[order_[position]].phase == Sequence::Phase::kWaiting);
    PAGODA_CHECK(position == 0 || !GoesBefore(order_[position], order_[position - 1]));
  }
}

}  // namespace pagoda::scheduler
