#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/bounded_ring.h"
#include "engine/executor.h"

namespace pagoda::fakes {

// Gives every request the tokens a test wrote for it. A plan does not name requests, so a script
// belongs to a seed. Also keeps every plan's outline, for tests that ask what was run.
// Threads: one at a time; scripts are set before the first step.
class ScriptedExecutor final : public engine::Executor {
 public:
  explicit ScriptedExecutor(std::int32_t max_num_seqs, int max_in_flight = 1);

  // The reply of the request with `seed`; behind its end comes kPastScript.
  void Script(std::uint64_t seed, std::vector<base::TokenId> reply);
  // The row that gives token `index` of that reply is not finite.
  void MakeNonFinite(std::uint64_t seed, std::size_t index);
  static constexpr base::TokenId kPastScript = 99;

  absl::Status Submit(const scheduler::StepPlan& plan) override;
  absl::StatusOr<const scheduler::StepResult*> Await() override;
  int max_in_flight() const override { return max_in_flight_; }

  std::int64_t num_submitted() const { return num_submitted_; }

 private:
  struct Row {
    std::uint64_t seed = 0;
    std::uint32_t num_prompt_tokens = 0;
  };

  void Draw(const scheduler::SampleRequest& request, scheduler::StepResult& result) const;

  const int max_in_flight_;
  std::vector<Row> rows_;
  std::map<std::uint64_t, std::vector<base::TokenId>> scripts_;
  std::set<std::pair<std::uint64_t, std::size_t>> not_finite_;
  std::vector<scheduler::StepResult> results_;  // reused in turn
  std::int64_t num_submitted_ = 0;
  std::int64_t num_awaited_ = 0;
};

}  // namespace pagoda::fakes
