#include "engine/journal_replay.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/snapshot.h"

namespace pagoda::engine {

absl::StatusOr<std::unique_ptr<JournalReplay>> JournalReplay::Open(const JournalSegment& segment) {
  PAGODA_ASSIGN_OR_RETURN(auto state, scheduler::ReadSnapshot(segment.snapshot));
  return std::make_unique<JournalReplay>(segment, std::move(state));
}

JournalReplay::JournalReplay(const JournalSegment& segment,
                             std::unique_ptr<scheduler::SchedulerState> state)
    : records_(segment.records),
      state_(*state),
      scheduler_(std::move(state)),
      digest_(segment.opening_digest) {}

absl::Status JournalReplay::Read() {
  record_begin_ = position_;
  scheduler::SnapshotArchive archive(records_.subspan(position_));
  VisitRecord(archive, record_, state_.block_size());
  if (!archive.ok()) {
    return absl::DataLossError(
        absl::StrCat("the record at byte ", position_, " of the segment's cannot be read"));
  }
  position_ += archive.position();
  return absl::OkStatus();
}

absl::Status JournalReplay::Apply() {
  num_inputs_ += record_.kind != RecordKind::kDecided;
  switch (record_.kind) {
    case RecordKind::kAdd:
      scheduler_.Add(*std::move(record_.request));
      break;
    case RecordKind::kAddPublicPrefix:
      // Refused then, refused now.
      scheduler_.AddPublicPrefix(*std::move(record_.request), record_.readers).IgnoreError();
      break;
    case RecordKind::kCancel:
      scheduler_.Cancel(record_.id, record_.reason);
      break;
    case RecordKind::kSetPaused:
      scheduler_.SetPaused(record_.id, record_.paused);
      break;
    case RecordKind::kTryPlan:
      if (const auto* plan = scheduler_.TryPlan(record_.now)) digest_.AddPlan(*plan);
      break;
    case RecordKind::kComplete:
      scheduler_.Complete(record_.result, record_.outcomes);
      break;
    case RecordKind::kFail:
      scheduler_.Fail(record_.job);
      break;
    case RecordKind::kFence:
      scheduler_.Fence(record_.job);
      break;
    case RecordKind::kFlush:
      scheduler_.FlushPrefixCache(record_.tenant);
      break;
    case RecordKind::kReconfigure:
      scheduler_.Reconfigure(record_.tenants).IgnoreError();
      break;
    case RecordKind::kTakeFinished:
      finished_.clear();
      scheduler_.TakeFinished(finished_);
      for (const scheduler::FinishEvent& event : finished_) digest_.AddEnd(event);
      break;
    case RecordKind::kDecided:
      ++num_decisions_;
      if (record_.digest == digest_.value()) break;
      return absl::AbortedError(absl::StrCat(
          "decision ", num_decisions_, ", after ", num_inputs_, " inputs, is another one: ",
          absl::Hex(digest_.value()), ", not ", absl::Hex(record_.digest)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplayReport> ReplaySegments(std::span<const JournalSegment> segments) {
  ReplayReport report;
  for (const JournalSegment& segment : segments) {
    const std::string where = absl::StrCat("segment ", segment.number, ": ");
    if (segment.follows_on && report.num_segments > 0 &&
        segment.opening_digest != report.decisions) {
      return absl::AbortedError(
          absl::StrCat(where, "begins with other decisions than the one before it ends with"));
    }
    const auto replay = JournalReplay::Open(segment);
    if (!replay.ok()) {
      return absl::Status(replay.status().code(), absl::StrCat(where, replay.status().message()));
    }
    while (!(*replay)->at_end()) {
      absl::Status status = (*replay)->Read();
      if (status.ok()) status = (*replay)->Apply();
      if (status.ok()) continue;
      return absl::Status(status.code(), absl::StrCat(where, status.message()));
    }
    ++report.num_segments;
    report.num_inputs += (*replay)->num_inputs();
    report.num_decisions += (*replay)->num_decisions();
    report.decisions = (*replay)->decisions();
  }
  return report;
}

}  // namespace pagoda::engine
