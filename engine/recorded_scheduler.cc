#include "engine/recorded_scheduler.h"

#include <utility>

namespace pagoda::engine {

using scheduler::SnapshotArchive;

RecordedScheduler::RecordedScheduler(scheduler::Scheduler& scheduler, Journal* journal)
    : scheduler_(scheduler), journal_(journal) {
  if (journal_ != nullptr) OpenSegment();
}

void RecordedScheduler::OpenSegment() {
  const std::span<std::uint8_t> room = journal_->BeginSegment();
  if (room.empty()) return;
  journal_->OpenSegment(scheduler_.Snapshot(room), digest_.value());
}

template <typename Write>
void RecordedScheduler::Record(RecordKind kind, Write write) {
  if (journal_ == nullptr || !journal_->is_recording()) return;
  SnapshotArchive archive(journal_->record_room());
  archive(kind);
  write(archive);
  if (!archive.ok()) return journal_->Cut();
  journal_->AddRecord(archive.position());
}

void RecordedScheduler::RecordDecision() {
  std::uint64_t value = digest_.value();
  Record(RecordKind::kDecided, [&](SnapshotArchive& a) { a(value); });
}

void RecordedScheduler::Add(scheduler::NewRequest request) {
  Record(RecordKind::kAdd,
         [&](SnapshotArchive& a) { VisitRequest(a, request, scheduler_.block_size()); });
  scheduler_.Add(std::move(request));
}

absl::Status RecordedScheduler::AddPublicPrefix(scheduler::NewRequest request,
                                                std::vector<base::TenantId> readers) {
  Record(RecordKind::kAddPublicPrefix, [&](SnapshotArchive& a) {
    VisitRequest(a, request, scheduler_.block_size());
    a.List(readers, readers.size());
  });
  return scheduler_.AddPublicPrefix(std::move(request), std::move(readers));
}

void RecordedScheduler::Cancel(base::RequestId id, scheduler::FinishReason reason) {
  Record(RecordKind::kCancel, [&](SnapshotArchive& a) { a(id, reason); });
  scheduler_.Cancel(id, reason);
}

void RecordedScheduler::SetPaused(base::RequestId id, bool paused) {
  Record(RecordKind::kSetPaused, [&](SnapshotArchive& a) { a(id, paused); });
  scheduler_.SetPaused(id, paused);
}

const scheduler::StepPlan* RecordedScheduler::TryPlan(base::Instant now) {
  Record(RecordKind::kTryPlan, [&](SnapshotArchive& a) { a(now); });
  const scheduler::StepPlan* plan = scheduler_.TryPlan(now);
  if (journal_ != nullptr && plan != nullptr) {
    digest_.AddPlan(*plan);
    RecordDecision();
  }
  return plan;
}

void RecordedScheduler::Complete(const scheduler::StepResult& result,
                                 std::span<const scheduler::SampleOutcome> outcomes) {
  Record(RecordKind::kComplete, [&](SnapshotArchive& a) { WriteResult(a, result, outcomes); });
  scheduler_.Complete(result, outcomes);
}

void RecordedScheduler::Fail(base::JobId job) {
  Record(RecordKind::kFail, [&](SnapshotArchive& a) { a(job); });
  scheduler_.Fail(job);
}

void RecordedScheduler::Fence(base::JobId job) {
  Record(RecordKind::kFence, [&](SnapshotArchive& a) { a(job); });
  scheduler_.Fence(job);
}

std::int32_t RecordedScheduler::FlushPrefixCache(std::optional<base::TenantId> only) {
  Record(RecordKind::kFlush, [&](SnapshotArchive& a) { a(only); });
  return scheduler_.FlushPrefixCache(only);
}

absl::Status RecordedScheduler::Reconfigure(std::vector<scheduler::TenantConfig> tenants) {
  JournalRecord record{.kind = RecordKind::kReconfigure, .tenants = tenants};
  if (journal_ != nullptr && journal_->is_recording()) {
    SnapshotArchive archive(journal_->record_room());
    VisitRecord(archive, record, scheduler_.block_size());
    archive.ok() ? journal_->AddRecord(archive.position()) : journal_->Cut();
  }
  return scheduler_.Reconfigure(std::move(tenants));
}

void RecordedScheduler::TakeFinished(std::vector<scheduler::FinishEvent>& out) {
  const std::size_t first = out.size();
  scheduler_.TakeFinished(out);
  if (journal_ == nullptr) return;
  if (out.size() > first) {
    Record(RecordKind::kTakeFinished, [](SnapshotArchive&) {});
    for (std::size_t i = first; i < out.size(); ++i) digest_.AddEnd(out[i]);
    RecordDecision();
  }
  if (journal_->wants_segment()) OpenSegment();
}

}  // namespace pagoda::engine
