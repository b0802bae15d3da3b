#include "tests/fakes/recording_sink.h"

#include <utility>

#include "base/check.h"

namespace pagoda::fakes {

namespace {

void AppendScores(std::span<const base::TokenScore> more,
                  std::span<const base::TokenLogprob> alternatives,
                  std::vector<RecordingSink::Score>& scores) {
  for (const base::TokenScore& score : more) {
    const auto own = alternatives.subspan(score.first_alternative, score.num_alternatives);
    scores.push_back({score.of, score.rank, {own.begin(), own.end()}});
  }
}

}  // namespace

void RecordingSink::OnPromptScores(const engine::PromptScoreDelivery& delivery) {
  base::MutexLock lock(mutex_);
  Reply& reply = replies_[{delivery.request, 0}];
  PAGODA_CHECK_MSG(!reply.reason && reply.tokens.empty(), "scores of a prompt after a token");
  PAGODA_CHECK(!delivery.scores.empty());
  AppendScores(delivery.scores, delivery.alternatives, reply.prompt_scores);
}

void RecordingSink::OnTokens(const engine::TokenDelivery& delivery) {
  base::MutexLock lock(mutex_);
  Reply& reply = replies_[{delivery.request, delivery.choice}];
  PAGODA_CHECK_MSG(!reply.reason, "tokens after the end");
  PAGODA_CHECK(!delivery.tokens.empty());
  reply.tokens.insert(reply.tokens.end(), delivery.tokens.begin(), delivery.tokens.end());
  PAGODA_CHECK(delivery.scores.empty() || delivery.scores.size() == delivery.tokens.size());
  AppendScores(delivery.scores, delivery.alternatives, reply.scores);
  reply.showable_bytes.push_back(delivery.showable_bytes);
  changed_.NotifyAll();
}

void RecordingSink::OnFinished(scheduler::FinishEvent event) {
  base::MutexLock lock(mutex_);
  const base::RequestId id = event.request.id;
  for (std::uint32_t i = 0; i < event.request.num_choices(); ++i) {
    scheduler::Choice& choice = event.request.choice(i);
    Reply& reply = replies_[{id, i}];
    PAGODA_CHECK_MSG(!reply.reason, "a second end");
    reply.reason = choice.finish.value_or(event.reason);
    reply.text_bytes = choice.stop.text_end;
    reply.matched_stop = choice.stop.matched_stop;
    reply.matched_stop_token = choice.stop.matched_stop_token;
    reply.receipt = event.receipt;
    reply.all_tokens = std::move(choice.tokens);
  }
  finish_order_.push_back(id);
  changed_.NotifyAll();
}

void RecordingSink::OnEngineFailed(const absl::Status& why) {
  base::MutexLock lock(mutex_);
  PAGODA_CHECK_MSG(engine_failure_.ok(), "a second failure");
  engine_failure_ = why;
  changed_.NotifyAll();
}

RecordingSink::Reply RecordingSink::reply(base::RequestId id, std::uint32_t choice) const {
  base::MutexLock lock(mutex_);
  const auto found = replies_.find({id, choice});
  return found == replies_.end() ? Reply{} : found->second;
}

std::size_t RecordingSink::num_finished() const {
  base::MutexLock lock(mutex_);
  return finish_order_.size();
}

std::vector<base::RequestId> RecordingSink::finish_order() const {
  base::MutexLock lock(mutex_);
  return finish_order_;
}

absl::Status RecordingSink::engine_failure() const {
  base::MutexLock lock(mutex_);
  return engine_failure_;
}

void RecordingSink::WaitForFinished(std::size_t count) {
  base::MutexLock lock(mutex_);
  while (finish_order_.size() < count) changed_.Wait(mutex_);
}

void RecordingSink::WaitForTokens(base::RequestId id, std::size_t count) {
  base::MutexLock lock(mutex_);
  while (replies_[{id, 0}].tokens.size() < count) changed_.Wait(mutex_);
}

}  // namespace pagoda::fakes
