#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/decision_digest.h"
#include "engine/journal.h"
#include "engine/journal_record.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_state.h"

namespace pagoda::engine {

// Plays one segment again: a scheduler made from its snapshot is told what the other one was told,
// and each of its decisions is held against the one that was written down. Owner: its user; one
// thread. The bytes must outlive it.
class JournalReplay {
 public:
  // DataLoss when the snapshot is none of this build.
  static absl::StatusOr<std::unique_ptr<JournalReplay>> Open(const JournalSegment& segment);
  JournalReplay(const JournalSegment& segment, std::unique_ptr<scheduler::SchedulerState> state);

  bool at_end() const { return position_ == records_.size(); }
  // Reads the next record, which stays where it is until the one after it is read. DataLoss when
  // there is none that makes sense. Requires: !at_end().
  absl::Status Read();
  // Does what was read. Aborted when a decision is another one than was written down; a broken
  // invariant ends the process, as it did then.
  absl::Status Apply();

  JournalRecord& record() { return record_; }
  std::size_t record_begin() const { return record_begin_; }  // of the bytes read
  const scheduler::SchedulerState& state() const { return state_; }
  // Taken by the last record applied.
  std::span<const scheduler::FinishEvent> finished() const { return finished_; }

  std::int64_t num_inputs() const { return num_inputs_; }
  std::int64_t num_decisions() const { return num_decisions_; }  // held against what was written
  std::uint64_t decisions() const { return digest_.value(); }

 private:
  std::span<const std::uint8_t> records_;
  std::size_t position_ = 0, record_begin_ = 0;
  scheduler::SchedulerState& state_;
  scheduler::Scheduler scheduler_;
  JournalRecord record_;
  DecisionDigest digest_;
  std::vector<scheduler::FinishEvent> finished_;
  std::int64_t num_inputs_ = 0, num_decisions_ = 0;
};

struct ReplayReport {
  std::int64_t num_segments = 0, num_inputs = 0, num_decisions = 0;
  std::uint64_t decisions = 0;  // the digest at the end
};
// Plays all of them, one after another; one that follows on another must begin with the decisions
// with which that one ended. Errors say in which segment and at which record.
absl::StatusOr<ReplayReport> ReplaySegments(std::span<const JournalSegment> segments);

}  // namespace pagoda::engine
