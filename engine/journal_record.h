#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "scheduler/events.h"
#include "scheduler/request.h"
#include "scheduler/snapshot_archive.h"
#include "scheduler/step_plan.h"
#include "scheduler/tenant_config.h"

namespace pagoda::engine {

// One call of the scheduler that changed it, or what it decided. An input is written before the
// call, its decisions after it: the last input of a journal may be the one that ended the process.
enum class RecordKind : std::uint8_t {
  kAdd = 1,
  kAddPublicPrefix,
  kCancel,
  kSetPaused,
  kTryPlan,
  kComplete,
  kFail,
  kFence,
  kFlush,
  kReconfigure,
  kTakeFinished,
  kDecided,  // of the input before it: the digest of all decisions so far
};

// What the fields of a record mean is its kind's; the others stay as they are. Read into one object
// again and again.
struct JournalRecord {
  RecordKind kind = RecordKind::kDecided;
  std::optional<scheduler::NewRequest> request = {};    // kAdd, kAddPublicPrefix
  std::vector<base::TenantId> readers = {};             // kAddPublicPrefix
  base::RequestId id = {};                              // kCancel, kSetPaused
  scheduler::FinishReason reason = {};                  // kCancel
  bool paused = false;                                  // kSetPaused
  base::Instant now = {};                               // kTryPlan
  scheduler::StepResult result = {};                    // kComplete
  std::vector<scheduler::SampleOutcome> outcomes = {};  // kComplete
  base::JobId job = {};                                 // kFail, kFence
  std::optional<base::TenantId> tenant = {};            // kFlush
  std::vector<scheduler::TenantConfig> tenants = {};    // kReconfigure
  std::uint64_t digest = 0;                             // kDecided
};

// Writes or reads the record, as the archive does.
void VisitRecord(scheduler::SnapshotArchive& archive, JournalRecord& record,
                 std::int32_t block_size);

// Parts of it, for those who write from what they have. Of the scores only their numbers.
void VisitRequest(scheduler::SnapshotArchive& archive, scheduler::NewRequest& request,
                  std::int32_t block_size);
void WriteResult(scheduler::SnapshotArchive& archive, const scheduler::StepResult& result,
                 std::span<const scheduler::SampleOutcome> outcomes);

}  // namespace pagoda::engine
