#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/fakes/digest_executor.h"
#include "tests/scheduler/dice.h"
#include "tests/scheduler/requests.h"
#include "tests/scheduler/solo_oracle.h"

namespace pagoda::scheduler::testing {

// How often each thing happened, over one run or many: a simulation that never preempts proves
// nothing about preemption.
struct SimulationTally {
  std::int64_t runs = 0, steps = 0, requests = 0, finished = 0, cancelled = 0, expired = 0,
               failed = 0, refused = 0, preemptions = 0, evictions = 0, adoptions = 0, copies = 0,
               full_hits = 0, key_waits = 0, cached_tokens = 0, failures = 0, flushes = 0,
               pauses = 0, groups = 0, shared_rows = 0, group_preemptions = 0,
               choices_ended_apart = 0, non_finite = 0;
  void Add(const SimulationTally& other);
};

// One random small server life, made by `seed` alone: pool, bounds, arrivals, cancels, pauses,
// failing steps, flushes, late fences. The real scheduler with the digest model; every invariant is
// derived again after every step; every choice's answer must be a prefix of the solo answer (the
// whole of it when the request ended by itself). Faults abort by CHECK, with the seed printed
// before by the test.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed);
  SimulationTally Run();

 private:
  struct Plan {  // of one request
    RequestSketch sketch;
    int arrives_at = 0;
    int cancelled_at = -1;
    int paused_from = -1, paused_until = -1;
    bool stops_early = false;  // ends at the first token that kStopEvery divides
  };

  void MakeServer();
  void MakeRequests();
  void Arrive();
  void Disturb();
  void PlanSteps();
  void AwaitOldest();
  void FailOldest(const StepPlan& oldest);
  void MoveFences();
  void TakeFinished();
  void CheckAnswer(const FinishEvent& event);
  void CheckChoice(const FinishEvent& event, std::uint32_t index);
  SampleOutcome Judge(const SampleResult& sample, base::TokenId token);
  void SpoilRows(StepResult& step);
  void CheckIdle();
  bool ShouldAwait() const;

  Dice dice_;
  SchedulerConfig config_;
  ModelLimits limits_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<fakes::DigestExecutor> executor_;
  std::unique_ptr<SoloOracle> oracle_;
  std::vector<Plan> requests_;  // by id - 1, by arrival
  std::size_t next_arrival_ = 0;
  std::size_t num_live_ = 0;
  int tick_ = 0;
  int fence_delay_ = 0;
  int fail_one_in_ = 0;  // 0: never
  int flush_one_in_ = 0;
  int spoil_row_one_in_ = 0;
  int last_progress_ = 0;
  std::deque<const StepPlan*> submitted_;
  std::deque<std::pair<base::JobId, int>> fences_;
  std::vector<FinishEvent> finished_;
  std::vector<SampleOutcome> outcomes_;
  std::int64_t receipts_block_steps_ = 0;
  SimulationTally tally_;
};

}  // namespace pagoda::scheduler::testing
