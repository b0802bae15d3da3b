#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/digest_executor.h"
#include "tests/scheduler/requests.h"
#include "tests/scheduler/solo_oracle.h"

namespace pagoda::scheduler::testing {

// A scheduler and the digest model, driven by a script and answering in text, for tests that read
// as stories. One command a line:
//   add NAME prompt=N [from=T] max=N [salt=S] [priority=P] [deadline=T] [n=N]
//       [tenant=I] [skip=1] prompt: N ascending tokens from T (default 1)
//   step                    plan and submit; says the plan, or "nothing"
//   done                    the oldest step is complete and fenced; says who ended
//   complete, fence         the two halves of done
//   fail                    the oldest step failed, and is fenced
//   spoil                   the oldest step is complete and fenced, and none of its rows is finite
//   run                     step and done until idle; says who ended
//   cancel NAME, pause NAME, resume NAME, flush [TENANT], now T
//   public NAME prompt=N [from=T] [tenant=I] [readers=IJK]    a prefix for the public lane
// Invariants are derived after every command, and every answer is compared with the solo run.
class World {
 public:
  explicit World(SchedulerConfig config);

  void Run(std::string_view script);
  // What was said since the last call.
  std::string Said() { return std::exchange(said_, {}); }

  const Scheduler& scheduler() const { return *scheduler_; }
  const FinishEvent& ended(const std::string& name) const { return ended_.at(name); }
  std::span<const base::TokenId> answer(const std::string& name, std::uint32_t choice = 0) const;
  int num_steps() const { return num_steps_; }

 private:
  using Words = std::vector<std::string>;
  void Do(const Words& words);
  void Add(const Words& words);
  void AddPublic(NewRequest request, const std::string& name, const std::string& readers);
  void Flush(const Words& words);
  bool Step(bool aloud);
  void Complete(bool is_spoiled = false);
  void Fence();
  void Fail();
  void RunToTheEnd();
  std::string OwnerOf(std::span<const base::TokenId> history) const;
  void SayPlan(const StepPlan& plan);
  void TakeFinished();
  base::RequestId IdOf(const std::string& name) const;

  SchedulerConfig config_;
  std::unique_ptr<Scheduler> scheduler_;
  fakes::DigestExecutor executor_;
  SoloOracle oracle_;
  std::vector<std::string> names_;              // by id - 1
  std::map<std::uint32_t, std::string> slots_;  // "a" and, of further choices, "a.1"
  std::map<std::string, FinishEvent> ended_;
  std::deque<const StepPlan*> submitted_;
  base::JobId completed_;
  base::Instant now_;
  std::string said_;
  int num_steps_ = 0;
};

}  // namespace pagoda::scheduler::testing
