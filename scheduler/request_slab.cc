#include "scheduler/request_slab.h"

#include <utility>

#include "base/check.h"

namespace pagoda::scheduler {

RequestSlab::RequestSlab(std::size_t capacity) : requests_(capacity), by_id_(capacity) {
  free_.reserve(capacity);
  for (std::size_t i = capacity; i-- > 0;) {
    free_.push_back(RequestIndex(static_cast<std::uint32_t>(i)));
  }
}

RequestIndex RequestSlab::Add(NewRequest request) {
  PAGODA_CHECK_MSG(!free_.empty(), "more requests than the gate may let in");
  PAGODA_CHECK_MSG(!Find(request.id).has_value(), "a request id was used twice");
  const RequestIndex index = free_.back();
  free_.pop_back();
  LiveRequest& live = requests_[index.value()];
  PAGODA_CHECK(live.phase == LiveRequest::Phase::kVacant);
  by_id_.PushFront(request.id.value(), index.value());
  live = LiveRequest{};
  live.request.emplace(std::move(request));
  live.num_open = static_cast<std::int32_t>(live.request->num_choices());
  live.phase = LiveRequest::Phase::kWaiting;
  return index;
}

NewRequest RequestSlab::Remove(RequestIndex index) {
  LiveRequest& live = requests_[index.value()];
  PAGODA_CHECK(live.phase != LiveRequest::Phase::kVacant);
  by_id_.Remove(live.request->id.value(), index.value());
  NewRequest request = *std::move(live.request);
  live = LiveRequest{};
  free_.push_back(index);
  return request;
}

std::optional<RequestIndex> RequestSlab::Find(base::RequestId id) const {
  for (std::uint32_t item = by_id_.First(id.value()); item != HashChains::kEnd;
       item = by_id_.Next(item)) {
    if (requests_[item].request->id == id) return RequestIndex(item);
  }
  return std::nullopt;
}

}  // namespace pagoda::scheduler
