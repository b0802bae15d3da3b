#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/decision_digest.h"
#include "engine/journal.h"
#include "engine/journal_record.h"
#include "scheduler/scheduler.h"

namespace pagoda::engine {

// The calls that change a scheduler, each written into a journal before it is made, and what was
// decided behind it. Whoever calls the scheduler past this makes its journal worthless. Owner and
// thread: whose the scheduler's are. Nothing allocates.
class RecordedScheduler {
 public:
  // No journal: nothing is written. Both must outlive this.
  RecordedScheduler(scheduler::Scheduler& scheduler, Journal* journal);

  void Add(scheduler::NewRequest request);
  absl::Status AddPublicPrefix(scheduler::NewRequest request, std::vector<base::TenantId> readers);
  void Cancel(base::RequestId id, scheduler::FinishReason reason);
  void SetPaused(base::RequestId id, bool paused);
  const scheduler::StepPlan* TryPlan(base::Instant now);
  void Complete(const scheduler::StepResult& result,
                std::span<const scheduler::SampleOutcome> outcomes);
  void Fail(base::JobId job);
  void Fence(base::JobId job);
  std::int32_t FlushPrefixCache(std::optional<base::TenantId> only);
  absl::Status Reconfigure(std::vector<scheduler::TenantConfig> tenants);
  // A full segment gives way to a new one here: nothing is half done.
  void TakeFinished(std::vector<scheduler::FinishEvent>& out);

  // Of all decisions since the start.
  std::uint64_t decisions() const { return digest_.value(); }

 private:
  template <typename Write>
  void Record(RecordKind kind, Write write);
  void RecordDecision();
  void OpenSegment();

  scheduler::Scheduler& scheduler_;
  Journal* const journal_;
  DecisionDigest digest_;
};

}  // namespace pagoda::engine
