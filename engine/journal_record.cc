#include "engine/journal_record.h"

#include "scheduler/snapshot.h"

namespace pagoda::engine {
namespace {

using scheduler::SnapshotArchive;

constexpr std::size_t kMostTenants = 4096;
constexpr std::size_t kMostSamples = 1 << 20;

// The same lines write and read: what is written comes in as a copy.
void VisitSample(SnapshotArchive& a, scheduler::SampleResult& sample) {
  a(sample.slot, sample.slot_generation, sample.choice, sample.position, sample.tokens.begin,
    sample.tokens.count, sample.finite);
}
void VisitScore(SnapshotArchive& a, scheduler::ScoreResult& score) {
  a(score.slot, score.slot_generation, score.first_position, score.scores.begin, score.scores.count,
    score.finite);
}
void VisitOutcome(SnapshotArchive& a, scheduler::SampleOutcome& outcome) {
  a(outcome.num_accepted, outcome.finish);
}

template <typename T, typename Visit>
void WriteAll(SnapshotArchive& a, std::span<const T> items, Visit visit) {
  std::uint64_t size = items.size();
  a(size);
  for (T item : items) visit(a, item);
}

void VisitTenant(SnapshotArchive& a, scheduler::TenantConfig& tenant) {
  a.Text(tenant.name);
  a(tenant.weight, tenant.reserve_blocks, tenant.max_queued_requests, tenant.max_queued_tokens,
    tenant.max_running, tenant.isolated);
}

void ReadResult(SnapshotArchive& a, JournalRecord& record) {
  scheduler::StepResult& result = record.result;
  a(result.job);
  a.List(result.samples, kMostSamples, VisitSample);
  a.List(result.prompt_scores, kMostSamples, VisitScore);
  a.List(result.tokens, kMostSamples);
  a.List(record.outcomes, kMostSamples, VisitOutcome);
  if (record.outcomes.size() != result.samples.size()) a.Fail();
  for (const scheduler::SampleResult& sample : result.samples) {
    const std::uint64_t end = std::uint64_t{sample.tokens.begin} + sample.tokens.count;
    if (end > result.tokens.size()) a.Fail();
  }
}

void VisitAsked(SnapshotArchive& a, JournalRecord& record, std::int32_t block_size) {
  if (a.is_reading()) record.request.emplace(scheduler::SnapshotAccess::EmptyRequest());
  VisitRequest(a, *record.request, block_size);
  if (record.kind == RecordKind::kAddPublicPrefix) a.List(record.readers, kMostTenants);
}

}  // namespace

void VisitRequest(SnapshotArchive& archive, scheduler::NewRequest& request,
                  std::int32_t block_size) {
  scheduler::SnapshotAccess::Visit(archive, request, block_size);
}

void WriteResult(SnapshotArchive& archive, const scheduler::StepResult& result,
                 std::span<const scheduler::SampleOutcome> outcomes) {
  base::JobId job = result.job;
  archive(job);
  WriteAll(archive, std::span(result.samples), VisitSample);
  WriteAll(archive, std::span(result.prompt_scores), VisitScore);
  WriteAll(archive, std::span(result.tokens),
           [](SnapshotArchive& a, base::TokenId& token) { a(token); });
  WriteAll(archive, outcomes, VisitOutcome);
}

void VisitRecord(SnapshotArchive& archive, JournalRecord& record, std::int32_t block_size) {
  archive(record.kind);
  if (!archive.ok()) return;
  switch (record.kind) {
    case RecordKind::kAdd:
    case RecordKind::kAddPublicPrefix:
      return VisitAsked(archive, record, block_size);
    case RecordKind::kCancel:
      return archive(record.id, record.reason);
    case RecordKind::kSetPaused:
      return archive(record.id, record.paused);
    case RecordKind::kTryPlan:
      return archive(record.now);
    case RecordKind::kComplete:
      if (archive.is_reading()) return ReadResult(archive, record);
      return WriteResult(archive, record.result, record.outcomes);
    case RecordKind::kFail:
    case RecordKind::kFence:
      return archive(record.job);
    case RecordKind::kFlush:
      return archive(record.tenant);
    case RecordKind::kReconfigure:
      return archive.List(record.tenants, kMostTenants, VisitTenant);
    case RecordKind::kTakeFinished:
      return;
    case RecordKind::kDecided:
      return archive(record.digest);
  }
  archive.Fail();
}

}  // namespace pagoda::engine
