#include "scheduler/sequence_slab.h"

#include <utility>

#include "base/check.h"

namespace pagoda::scheduler {

SequenceSlab::SequenceSlab(std::size_t capacity) : sequences_(capacity), by_id_(capacity) {
  free_.reserve(capacity);
  for (std::size_t i = capacity; i-- > 0;) {
    free_.push_back(SequenceIndex(static_cast<std::uint32_t>(i)));
  }
}

SequenceIndex SequenceSlab::Add(NewRequest request) {
  PAGODA_CHECK_MSG(!free_.empty(), "more requests than the gate may let in");
  PAGODA_CHECK_MSG(!Find(request.id).has_value(), "a request id was used twice");
  const SequenceIndex index = free_.back();
  free_.pop_back();
  Sequence& sequence = sequences_[index.value()];
  PAGODA_CHECK(sequence.phase == Sequence::Phase::kVacant);
  by_id_.PushFront(request.id.value(), index.value());
  sequence = Sequence{};
  sequence.request.emplace(std::move(request));
  sequence.phase = Sequence::Phase::kWaiting;
  return index;
}

NewRequest SequenceSlab::Remove(SequenceIndex index) {
  Sequence& sequence = sequences_[index.value()];
  PAGODA_CHECK(sequence.phase != Sequence::Phase::kVacant);
  by_id_.Remove(sequence.request->id.value(), index.value());
  NewRequest request = *std::move(sequence.request);
  sequence = Sequence{};
  free_.push_back(index);
  return request;
}

std::optional<SequenceIndex> SequenceSlab::Find(base::RequestId id) const {
  for (std::uint32_t item = by_id_.First(id.value()); item != HashChains::kEnd;
       item = by_id_.Next(item)) {
    if (sequences_[item].request->id == id) return SequenceIndex(item);
  }
  return std::nullopt;
}

}  // namespace pagoda::scheduler
