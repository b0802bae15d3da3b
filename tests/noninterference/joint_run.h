#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/scheduler_state.h"
#include "tests/fakes/digest_executor.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler::testing {

inline constexpr base::TokenId kVocabulary = 97;

// One request of a tenant, and what the tenant does to it. Times are engine steps.
struct Ask {
  RequestSketch sketch;
  int at = 0;
  bool serial = false;  // not before the tenant's one before has ended, and four steps have passed
  int cancelled_at = -1;
  int paused_from = -1, paused_until = -1;  // its reader takes nothing
  bool stops_early = false;                 // at the first token that kStopEvery divides
  int spoiled_after = -1;                   // tokens of its reply: its next logits are not finite
};

// One thing that a tenant can see of the engine.
struct Sight {
  enum class Kind : std::uint8_t {
    kGate,       // accepted or not
    kMatch,      // blocks and tokens found at an admission
    kWork,       // its part of a step
    kCopy,       // slots copied
    kEvicted,    // one of its cached blocks: the beginning of its key, and whether it took it
    kToken,      // of a choice
    kScore,      // of a token of the prompt
    kPreempted,  //
    kFinished,   // why
    kReceipt,    // what a receipt says in steps, tokens and blocks
  };
  Kind kind = Kind::kGate;
  int step = 0;
  std::uint32_t request = 0;  // of the tenant's, by arrival
  std::int64_t values[4] = {};
  friend bool operator==(const Sight&, const Sight&) = default;
};

struct AskOutcome {
  bool refused = false;
  std::optional<FinishReason> finish;               // of the choice that ended last
  std::vector<std::vector<base::TokenId>> replies;  // by choice
  std::vector<FinishReason> finishes;               // likewise
  std::vector<base::TokenScore> scores;             // of its prompt
  std::optional<std::int32_t> hits;                 // full blocks, at the first admission
  std::int32_t copied = 0;                          // tokens
  Receipt receipt;
};

struct Observation {
  std::vector<Sight> transcript;     // of the observed tenant
  std::vector<AskOutcome> outcomes;  // of its asks
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;  // of anybody
  std::int64_t evictions_between_tenants = 0;
  std::int64_t hits = 0;  // of the observed tenant, blocks
};

struct JointRunOptions {
  SchedulerConfig config;
  int fence_delay = 0;  // a job planned at step s is done before the plan of step s + 1 + this
  int slow_reader_grace = 25;  // steps
  std::uint32_t observed = 0;  // tenant
  // This tenant keeps the engine stepping, whatever the others do: a step is what the engine
  // submits, and while nothing is submitted no step passes. Isolated; needs KeeperBlocks().
  std::uint32_t keeper = 0;
};

// The tenant that keeps the engine stepping.
inline constexpr int kKeeperEvery = 6, kKeeperSteps = 8, kKeeperSlots = 2;
std::int32_t KeeperBlocks(std::int32_t block_size);

// The real scheduler and the digest model, shared by several tenants, until the observed one has
// had all its answers.
class JointRun {
 public:
  JointRun(const JointRunOptions& options, const std::vector<Ask>& asks);
  ~JointRun();
  Observation Run();

 private:
  struct Live {
    const Ask* ask = nullptr;
    std::uint32_t local = 0;  // of its tenant's, by arrival
    std::uint64_t incarnation = 0;
    std::int64_t preemptions = 0;
    bool ended = false;
    int paused_since = -1;
  };
  struct TenantSide {
    std::deque<const Ask*> serial;
    std::uint32_t num_asked = 0;
    bool is_serial_live = false;
    int free_from = 0;  // the next serial one may come
  };

  void CompleteJobs();
  void Arrive();
  void Submit(const Ask& ask);
  void Keep();
  void Disturb();
  void Plan();
  void SeeAdmissions(const StepPlan& plan);
  void SeePlan(const StepPlan& plan);
  void SeeScores(const StepResult& result);
  void Spoil(StepResult& result) const;
  SampleOutcome Judge(const SampleResult& sample, base::TokenId token);
  void TakeFinished();
  bool IsDone() const;

  bool IsObserved(const Live& live) const;
  const Live& LiveOf(base::RequestId id) const { return lives_[id.value() - 1]; }
  Live& LiveOf(base::RequestId id) { return lives_[id.value() - 1]; }
  base::RequestId RequestIn(base::SlotId slot) const;
  void See(Sight::Kind kind, const Live& live, std::int64_t a = 0, std::int64_t b = 0,
           std::int64_t c = 0);
  void See(const Sight& sight) { seen_.transcript.push_back(sight); }
  AskOutcome& OutcomeOf(const Live& live) { return seen_.outcomes[live.local]; }

  JointRunOptions options_;
  SchedulerState* state_ = nullptr;  // the scheduler's
  std::unique_ptr<Scheduler> scheduler_;
  fakes::DigestExecutor executor_;
  std::vector<const Ask*> asks_;  // not serial, by time
  std::size_t next_ask_ = 0;
  Ask keeping_;
  std::vector<TenantSide> sides_;
  std::vector<Live> lives_;  // by id - 1
  std::size_t num_observed_asks_ = 0, num_observed_done_ = 0;
  int step_ = 0;
  std::deque<std::pair<base::JobId, int>> submitted_;  // with the step of the plan
  std::vector<SampleOutcome> outcomes_;
  std::vector<FinishEvent> finished_;
  Observation seen_;
};

}  // namespace pagoda::scheduler::testing
