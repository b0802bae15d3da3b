#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/events.h"
#include "scheduler/step_plan.h"
#include "tests/fakes/digest_executor.h"
#include "tests/scheduler/solo_oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/tally.h"

namespace pagoda::simulation {

// Holds what came back against what each request must be answered: every accepted request ends
// once; every choice's reply is a prefix of the reply of a run alone, and all of it when the choice
// ended by itself; every score of a prompt is given once, in order, and is that of a run alone.
class AnswerChecker {
 public:
  explicit AnswerChecker(const Scenario& scenario);

  void Accepted(base::RequestId id);
  // Scores of `request`'s prompt arrived; the first that counts is that of `next_position`.
  void TakeScores(const scheduler::NewRequest& request, std::uint32_t next_position,
                  const scheduler::ScoreResult& result, std::span<const base::TokenScore> scores);
  void TakeEnd(const scheduler::FinishEvent& event, Tally& tally);
  bool HasEnded(std::uint32_t place) const { return states_[place] == State::kEnded; }
  bool WasAccepted(std::uint32_t place) const { return states_[place] != State::kUnknown; }

 private:
  enum class State : std::uint8_t { kUnknown, kLive, kEnded };

  void CheckChoice(const scheduler::FinishEvent& event, std::uint32_t index);
  std::vector<base::TokenScore> SoloScores(const scheduler::NewRequest& request) const;

  const Scenario& scenario_;
  scheduler::testing::SoloOracle oracle_;
  std::vector<State> states_;              // by request
  std::vector<std::uint32_t> num_scored_;  // by request: leading prompt tokens with a score
  std::vector<std::vector<base::TokenScore>> scores_;  // by request, of a run alone
};

}  // namespace pagoda::simulation
