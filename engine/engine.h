#pragma once

#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "base/runtime/clock.h"
#include "engine/executor.h"
#include "engine/output_sink.h"
#include "scheduler/scheduler.h"

namespace pagoda::engine {

struct EngineOptions {
  // Messages that can be waiting at once: the sum of the permits of all who may push (requests, one cancel, one pause and
  // one resume per request, control calls).
  std::int32_t mailbox_capacity = 0;
  std::vector<base::TokenId> eos_tokens;
};

struct EngineStats {
  scheduler::SchedulerStats scheduler;
  std::int64_t steps = 0;
  base::Instant last_progress;  // the last completed step
  bool failed = false;
};

// One thread that owns the scheduler and feeds the executor: drain the mailbox, plan, submit, await, evaluate stops,
// complete, deliver. Everything else talks to it by message. See engine/README.md.
// Threads: Submit, Cancel, SetPaused, stats from any; Start and Stop from the owner.
class Engine {
 public:
  Engine(EngineOptions options, std::unique_ptr<scheduler::Scheduler> scheduler,
         std::unique_ptr<Executor> executor, OutputSink& sink, const base::ClockSource& clock);
  ~Engine();  // Requires: stopped, or never started.

  void Start();
  // Ends every live request with kShutdown, stops the thread and joins it. Idempotent.
  void Stop();

  // Hands the request over; it is accepted from now on and will get exactly one OnFinished. Requires: a permit is held.
  void Submit(scheduler::NewRequest request);
  void Cancel(base::RequestId id, scheduler::FinishReason reason);
  void SetPaused(base::RequestId id, bool paused);
  void FlushPrefixCache();

  // The epoch that prompt keys must be made under.
  std::uint64_t epoch() const;
  EngineStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::engine
