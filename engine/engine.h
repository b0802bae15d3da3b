#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/runtime/clock.h"
#include "engine/executor.h"
#include "engine/output_sink.h"
#include "scheduler/scheduler.h"

namespace pagoda::engine {

class Journal;

struct EngineOptions {
  // Messages that can be waiting at once: the sum of the permits of all who may push (requests, one
  // cancel, one pause and one resume per request, control calls). No more requests than this are
  // live at once.
  std::int32_t mailbox_capacity = 0;
  std::vector<base::TokenId> eos_tokens = {};
  // So many failed steps without a good one between them are no fault of one request: the engine
  // gives up.
  std::int32_t max_consecutive_failed_steps = 8;
  // Where what the scheduler is told is kept (journal.h); none: nowhere. Must outlive the engine.
  Journal* journal = nullptr;
};

struct EngineStats {
  scheduler::SchedulerStats scheduler = {};
  std::int64_t steps = 0;            // completed
  std::int64_t failed_steps = 0;     // given to Scheduler::Fail
  base::Instant last_progress = {};  // the last completed step
  // Requests handed to Submit, finished, and paused among the live ones.
  std::int64_t num_accepted = 0, num_finished = 0, num_paused = 0;
  bool failed = false;  // for good: every request is answered with kFailed
  // New weights, reserves and limits wait for what is held to fit them.
  bool is_reconfiguring = false;

  std::int64_t num_live() const { return num_accepted - num_finished; }
  std::int64_t num_runnable() const { return num_live() - num_paused; }
};

// One thread that owns the scheduler and feeds the executor: drain the mailbox, plan, submit,
// await, evaluate stops, complete, deliver. Everything else talks to it by message. See
// engine/README.md. Threads: Submit, Cancel, SetPaused, epoch and stats from any, the operator's
// commands from any, one at a time; Start and Stop from the owner.
class Engine {
 public:
  Engine(const EngineOptions& options, std::unique_ptr<scheduler::Scheduler> scheduler,
         std::unique_ptr<Executor> executor, OutputSink& sink, const base::ClockSource& clock);
  ~Engine();  // Requires: stopped, or never started.

  void Start();
  // Ends every live request with kShutdown, stops the thread and joins it. Idempotent.
  void Stop();

  // Hands the request over; it is accepted from now on and will get exactly one OnFinished.
  // Requires: a permit is held. A request that comes after Stop is finished with kShutdown before
  // this returns.
  void Submit(scheduler::NewRequest request);
  // Idempotent; unknown and finished ids are ignored.
  void Cancel(base::RequestId id, scheduler::FinishReason reason);
  void SetPaused(base::RequestId id, bool paused);

  // Commands, one at a time. They block until the engine thread has taken them, between
  // two steps. Unavailable when the engine has stopped.
  // Returns how many blocks of the tenant, or of all, were dropped.
  absl::StatusOr<std::int32_t> FlushPrefixCache(std::optional<base::TenantId> tenant);
  // See Scheduler::Reconfigure. OK: accepted; EngineStats::is_reconfiguring tells until when the
  // old ones hold.
  absl::Status Reconfigure(std::vector<scheduler::TenantConfig> tenants);

  // See Scheduler::AddPublicPrefix. OK: the request is accepted and will get its OnFinished; its
  // blocks are the public lane's then. Requires: before the first Submit.
  absl::Status AddPublicPrefix(scheduler::NewRequest request, std::vector<base::TenantId> readers);

  // The epoch that prompt keys of this tenant must be made under.
  std::uint64_t epoch(base::TenantId tenant = scheduler::kDefaultTenant) const;
  EngineStats stats() const;
  std::vector<scheduler::TenantStats> tenant_stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::engine
