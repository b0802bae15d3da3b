#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/bounded_ring.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/runtime/clock.h"
#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/message.h"
#include "engine/output_sink.h"
#include "engine/recorded_scheduler.h"
#include "engine/stop_evaluator.h"
#include "scheduler/scheduler.h"

namespace pagoda::engine {

// What the engine thread does, one turn at a time and without a thread of its own, so that a test
// can drive it step by step. Engine owns the thread and the mailbox around it. Owner: Engine, or a
// test. Threads: one. Nothing allocates after construction; requests bring their buffers and take
// them along. Invariants: every request that came in by Handle gets exactly one OnFinished, and no
// OnTokens behind it; a step is completed, failed or discarded exactly once, in order; the
// scheduler's fence moves only when the executor has said that the step is over.
class EngineLoop {
 public:
  EngineLoop(const EngineOptions& options, scheduler::Scheduler& scheduler, Executor& executor,
             OutputSink& sink, const base::ClockSource& clock);

  void Handle(Message message);

  // One turn: plan if there is room in flight; await if there is none, or if nothing could be
  // planned. kIdle: nothing was done, and nothing will be before a message comes or NextWake() has
  // passed.
  enum class Turn : std::uint8_t { kWorked, kIdle };
  Turn RunTurn();
  base::Instant NextWake() const;

  // Ends every live request with `reason` and waits for every step in flight.
  void EndAll(scheduler::FinishReason reason);

  // All but num_accepted, which the door counts.
  EngineStats stats() const;
  // Of the last operator's command.
  const CommandAnswer& last_answer() const { return last_answer_; }

 private:
  struct LiveRequest {
    base::RequestId id;
    bool paused = false;
  };

  void Admit(scheduler::NewRequest request);
  absl::Status AddPublicPrefix(Message message);
  void SetPaused(base::RequestId id, bool paused);
  LiveRequest* FindLive(base::RequestId id);

  bool PlanAndSubmit();
  void AwaitOldest();
  void DeliverScores(const scheduler::StepResult& step, const scheduler::ScoreResult& result);
  scheduler::SampleOutcome Judge(const scheduler::StepResult& step,
                                 const scheduler::SampleResult& sample);
  void HandleFailure(base::JobId job, const absl::Status& why);
  void DiscardInFlight();
  void MoveFence(base::JobId done);
  void GiveUp(const absl::Status& why);

  void DeliverFinished();
  void Finish(scheduler::FinishEvent event);

  scheduler::Scheduler& scheduler_;  // asked here, and changed through `recorded_` alone
  RecordedScheduler recorded_;
  Executor& executor_;
  OutputSink& sink_;
  const base::ClockSource& clock_;
  const StopEvaluator stops_;
  const std::int32_t max_consecutive_failed_steps_;

  base::BoundedRing<base::JobId> in_flight_;  // oldest first
  base::JobId last_planned_;
  std::vector<LiveRequest> live_;
  std::vector<scheduler::SampleOutcome> outcomes_;
  std::vector<scheduler::FinishEvent> finished_;

  std::int32_t consecutive_failed_steps_ = 0;
  EngineStats stats_;
  CommandAnswer last_answer_;
};

}  // namespace pagoda::engine
