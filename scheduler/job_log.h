#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "scheduler/step_draft.h"

namespace pagoda::scheduler {

// A submitted step, until its fence.
struct JobRecord {
  enum class Phase : std::uint8_t { kInFlight, kDone, kVoid };

  base::JobId job;
  Phase phase = Phase::kInFlight;
  std::vector<DraftItem> items;
  // By slot; StepDraft::kNone when the job does nothing for it.
  std::vector<std::uint32_t> item_of_slot;

  // Null when the job has no item of this opening of the slot.
  const DraftItem* ItemOf(base::SlotId slot, std::uint32_t slot_generation) const {
    const std::uint32_t item = item_of_slot[slot.value()];
    if (item == StepDraft::kNone || items[item].slot_generation != slot_generation) return nullptr;
    return &items[item];
  }
};

// The jobs that are not fenced yet, oldest first: a ring of records that are filled anew.
// Invariant: phases are Done or Void before In flight, except that Void ones may stand anywhere
// after a Fail.
class JobLog {
 public:
  JobLog(std::size_t capacity, std::size_t num_slots) : ring_(capacity) {
    for (JobRecord& record : ring_) {
      record.items.reserve(num_slots);
      record.item_of_slot.assign(num_slots, StepDraft::kNone);
    }
  }

  std::size_t size() const { return size_; }
  bool full() const { return size_ == ring_.size(); }
  bool empty() const { return size_ == 0; }
  std::int32_t num_in_flight() const { return num_in_flight_; }
  JobRecord& at(std::size_t i) { return ring_[(first_ + i) % ring_.size()]; }
  const JobRecord& at(std::size_t i) const { return ring_[(first_ + i) % ring_.size()]; }

  base::JobId next_job() const { return base::JobId(newest_.value() + 1); }
  base::JobId fenced() const { return fenced_; }

  // Takes the draft's items. The record is then the newest.
  JobRecord& Push(StepDraft& draft) {
    PAGODA_CHECK(!full());
    PAGODA_CHECK(draft.job() == next_job());
    newest_ = draft.job();
    JobRecord& record = at(size_++);
    record.job = draft.job();
    record.phase = JobRecord::Phase::kInFlight;
    ++num_in_flight_;
    draft.SwapItems(record.items, record.item_of_slot);
    return record;
  }

  const JobRecord* OldestInFlight() const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (at(i).phase == JobRecord::Phase::kInFlight) return &at(i);
    }
    return nullptr;
  }
  JobRecord* Find(base::JobId job) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (at(i).job == job) return &at(i);
    }
    return nullptr;
  }
  void Leave(JobRecord& record, JobRecord::Phase phase) {
    PAGODA_CHECK(record.phase == JobRecord::Phase::kInFlight);
    record.phase = phase;
    --num_in_flight_;
  }
  void Fence(base::JobId job) {
    PAGODA_CHECK(job <= newest_);
    while (size_ > 0 && at(0).job <= job) {
      PAGODA_CHECK_MSG(at(0).phase != JobRecord::Phase::kInFlight, "fenced before it was done");
      JobRecord& fenced = at(0);
      first_ = (first_ + 1) % ring_.size();
      --size_;
      // The next job takes over what was used last: it is the likeliest to be in a cache.
      JobRecord& next = at(size_);
      fenced.items.swap(next.items);
      fenced.item_of_slot.swap(next.item_of_slot);
    }
    if (job > fenced_) fenced_ = job;
  }

 private:
  friend struct SnapshotAccess;
  std::vector<JobRecord> ring_;
  std::size_t first_ = 0, size_ = 0;
  std::int32_t num_in_flight_ = 0;
  base::JobId newest_, fenced_;
};

}  // namespace pagoda::scheduler
