#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/recorded_scheduler.h"
#include "scheduler/scheduler.h"
#include "tests/fakes/digest_executor.h"
#include "tests/simulation/answer_checker.h"
#include "tests/simulation/auditor.h"
#include "tests/simulation/decision_hash.h"
#include "tests/simulation/gate.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/tally.h"

namespace pagoda::simulation {

struct Outcome {
  Tally tally;
  std::uint64_t decisions = 0;  // hash of every plan and every end
};

// Plays a scenario: the real scheduler under a clock that counts ticks, with the digest model.
// Every invariant is derived again after every step, an auditor watches every plan from outside,
// and every answer is held against a run of its request alone. A violation aborts the process by
// CHECK. Owner: its user; one thread; plays once.
class Simulation {
 public:
  // Says every decision to `trace`, unless it is null.
  explicit Simulation(const Scenario& scenario, std::FILE* trace = nullptr);
  // Before Run: what the scheduler is told goes into this journal.
  void RecordInto(engine::Journal& journal);
  Outcome Run();
  // Of all that was recorded.
  std::uint64_t recorded_decisions() const { return recorded_->decisions(); }

 private:
  static constexpr int kReads = -1;
  struct Fence {
    base::JobId job;
    int at = 0;  // tick
  };

  bool IsOver() const;
  bool Draw(std::uint64_t purpose, int one_in) const;  // by tick
  void RegisterPrefixes();
  void Tick();
  void Arrive();
  void LetHappen();
  void Happen(const Event& event);
  void CancelRequest(std::uint32_t place, scheduler::FinishReason reason);
  void CountCancel(std::uint32_t place);
  void CutSlowReaders();
  void Reconfigure(std::uint32_t list);
  void Flush(std::uint32_t tenant);
  void PlanSteps();
  void CountPlan(const scheduler::StepPlan& plan);
  void Await();
  void Complete(const scheduler::StepResult& result);
  void FailSubmission(const scheduler::StepPlan& plan);
  void FailOldest(const scheduler::StepPlan& oldest);
  void SpoilRow(scheduler::StepResult& step);
  scheduler::SampleOutcome Judge(const scheduler::SampleResult& sample, base::TokenId token);
  void MoveFences();
  void TakeFinished();
  void CheckIdle();
  void Say(const char* what, std::uint64_t number);
  void SayPlan(const scheduler::StepPlan& plan);

  const Scenario& scenario_;
  std::FILE* const trace_;
  scheduler::SchedulerState* state_ = nullptr;       // scheduler_'s, to look at
  std::unique_ptr<scheduler::Scheduler> scheduler_;  // asked here, changed through `recorded_`
  std::optional<engine::RecordedScheduler> recorded_;
  fakes::DigestExecutor executor_;
  Outcome outcome_;
  Tally& tally_ = outcome_.tally;
  Gate gate_;
  AnswerChecker answers_;
  Auditor auditor_;
  DecisionHash decisions_;
  std::size_t next_arrival_ = 0, next_event_ = 0;
  std::size_t num_live_ = 0;
  int tick_ = 0;
  int last_progress_ = 0;
  bool fail_submission_ = false, fail_await_ = false;
  std::optional<std::uint32_t> spoil_row_;
  std::vector<int> paused_since_;  // by request, tick; kReads: it reads
  std::deque<const scheduler::StepPlan*> submitted_;
  std::deque<Fence> fences_;
  std::vector<scheduler::FinishEvent> finished_;
  std::vector<scheduler::SampleOutcome> outcomes_;
  std::int64_t receipts_block_steps_ = 0;
};

}  // namespace pagoda::simulation
