#include "tests/simulation/answer_checker.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::simulation {

using scheduler::FinishEvent;
using scheduler::FinishReason;
using scheduler::NewRequest;

AnswerChecker::AnswerChecker(const Scenario& scenario)
    : scenario_(scenario),
      oracle_(scenario.config.block_size, scenario.config.max_model_len, kVocabulary),
      states_(scenario.requests.size(), State::kUnknown),
      num_scored_(scenario.requests.size(), 1),
      scores_(scenario.requests.size()) {}

void AnswerChecker::Accepted(base::RequestId id) {
  State& state = states_[id.value() - 1];
  PAGODA_CHECK(state == State::kUnknown);
  state = State::kLive;
}

// The whole prompt in one step of a model of its own.
std::vector<base::TokenScore> AnswerChecker::SoloScores(const NewRequest& request) const {
  const auto length = static_cast<std::uint32_t>(request.prompt_length());
  const std::int32_t num_blocks = base::DivUp(request.prompt_length(), scenario_.config.block_size);
  fakes::DigestExecutor model({.pool_blocks_per_group = {num_blocks + 1},
                               .block_size = scenario_.config.block_size,
                               .max_num_seqs = 1,
                               .max_model_len = scenario_.config.max_model_len,
                               .vocabulary_size = kVocabulary});
  scheduler::StepPlan plan;
  plan.tokens = request.tokens();
  plan.tokens.resize(length);
  scheduler::SlotOpening opening;
  opening.history = {0, length};
  plan.opened.push_back(opening);
  for (std::int32_t i = 0; i < num_blocks; ++i) {
    const base::BlockId block(static_cast<std::uint32_t>(i) + 1);
    plan.zeros.push_back({base::KvGroupId{0}, block});
    plan.memory_effects.push_back({.index = static_cast<std::uint32_t>(i)});
    plan.block_appends.push_back({base::KvGroupId{0}, block, -1});
  }
  for (const base::TokenId token : plan.tokens) plan.plan_tokens.push_back({token, false});
  scheduler::WorkItem item;
  item.tokens = {0, length};
  item.appended_blocks = {0, static_cast<std::uint32_t>(num_blocks)};
  plan.work.push_back(item);
  for (std::uint32_t i = 0; i + 1 < length; ++i) plan.rows.push_back({0, i});
  scheduler::ScoreRequest scores;
  scores.first_position = 1;
  scores.tokens = {1, length - 1};
  plan.scores.push_back(scores);
  PAGODA_CHECK(model.Submit(plan).ok());
  return (*model.Await())->scores;
}

void AnswerChecker::TakeScores(const NewRequest& request, std::uint32_t next_position,
                               const scheduler::ScoreResult& result,
                               std::span<const base::TokenScore> scores) {
  const std::uint64_t place = request.id.value() - 1;
  PAGODA_CHECK_MSG(next_position == num_scored_[place], "a score is given twice, or never");
  std::vector<base::TokenScore>& solo = scores_[place];
  if (solo.empty()) solo = SoloScores(request);
  for (std::uint32_t i = next_position - result.first_position; i < result.scores.count; ++i) {
    const base::TokenScore& score = scores[i];
    const base::TokenScore& wanted = solo.at(result.first_position + i - 1);
    PAGODA_CHECK_MSG(score.of.token == wanted.of.token && score.of.logprob == wanted.of.logprob &&
                         score.rank == wanted.rank,
                     "a score differs from the solo run");
    ++num_scored_[place];
  }
}

void AnswerChecker::TakeEnd(const FinishEvent& event, Tally& tally) {
  const NewRequest& request = event.request;
  State& state = states_[request.id.value() - 1];
  PAGODA_CHECK_MSG(state == State::kLive, "a request ends twice, or was never accepted");
  state = State::kEnded;
  std::int32_t generated = 0;
  for (std::uint32_t i = 0; i < request.num_choices(); ++i) {
    generated += request.choice(i).num_known() - request.prompt_length();
    PAGODA_CHECK(request.choice(i).finish.has_value());
    tally[Seen::kChoicesEndedApart] += request.choice(i).finish != event.reason;
    CheckChoice(event, i);
  }
  PAGODA_CHECK(event.receipt.generated_tokens == generated);
  PAGODA_CHECK(event.receipt.prompt_tokens == request.prompt_length());
  PAGODA_CHECK(event.receipt.cached_tokens >= 0);
  PAGODA_CHECK(event.receipt.cached_tokens < std::max(request.prompt_length(), 1));
  PAGODA_CHECK(event.receipt.discarded_tokens >= 0);
  PAGODA_CHECK(event.receipt.blocks_peak <= request.WorstCaseBlocks(scenario_.config.block_size));
}

void AnswerChecker::CheckChoice(const FinishEvent& event, std::uint32_t index) {
  const NewRequest& request = event.request;
  const auto prompt_length = static_cast<std::size_t>(request.prompt_length());
  const auto all = std::span<const base::TokenId>(request.tokens(index));
  const auto reply = all.subspan(prompt_length);
  const RequestScript& script = scenario_.requests[request.id.value() - 1];
  PAGODA_CHECK_MSG(std::ranges::equal(all.first(prompt_length), script.prompt), "another prompt");
  const FinishReason reason = *request.choice(index).finish;
  const bool by_itself = reason == FinishReason::kStop || reason == FinishReason::kLength;
  PAGODA_CHECK(!by_itself || !reply.empty());
  if (reply.empty()) return;
  const auto solo =
      oracle_.Answer(all.first(prompt_length), request.sampling(), reply.size(), index);
  PAGODA_CHECK_MSG(std::ranges::equal(reply, solo), "an answer differs from the solo run");
  if (!by_itself) return;
  const bool is_stop = script.stops_early && reply.back() % kStopEvery == 0;
  PAGODA_CHECK(is_stop == (reason == FinishReason::kStop));
  PAGODA_CHECK(is_stop || static_cast<std::int32_t>(reply.size()) == request.max_tokens());
  if (!request.sampling().prompt_logprobs.has_value()) return;
  PAGODA_CHECK_MSG(num_scored_[request.id.value() - 1] == prompt_length,
                   "a prompt's scores are missing at its end");
}

}  // namespace pagoda::simulation
