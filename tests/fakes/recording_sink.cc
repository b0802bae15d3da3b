#include "tests/fakes/recording_sink.h"

#include <utility>

#include "base/check.h"

namespace pagoda::fakes {

void RecordingSink::OnTokens(const engine::TokenDelivery& delivery) {
  base::MutexLock lock(mutex_);
  Reply& reply = replies_[delivery.request];
  PAGODA_CHECK_MSG(!reply.reason, "tokens after the end");
  PAGODA_CHECK(!delivery.tokens.empty());
  reply.tokens.insert(reply.tokens.end(), delivery.tokens.begin(), delivery.tokens.end());
  reply.showable_bytes.push_back(delivery.showable_bytes);
  changed_.NotifyAll();
}

void RecordingSink::OnFinished(engine::Completion completion) {
  base::MutexLock lock(mutex_);
  const base::RequestId id = completion.event.request.id;
  Reply& reply = replies_[id];
  PAGODA_CHECK_MSG(!reply.reason, "a second end");
  reply.reason = completion.event.reason;
  reply.text_bytes = completion.text_bytes;
  reply.matched_stop = completion.matched_stop;
  reply.matched_stop_token = completion.matched_stop_token;
  reply.receipt = completion.event.receipt;
  reply.all_tokens = std::move(completion.event.request.tokens());
  finish_order_.push_back(id);
  changed_.NotifyAll();
}

void RecordingSink::OnEngineFailed(const absl::Status& why) {
  base::MutexLock lock(mutex_);
  PAGODA_CHECK_MSG(engine_failure_.ok(), "a second failure");
  engine_failure_ = why;
  changed_.NotifyAll();
}

RecordingSink::Reply RecordingSink::reply(base::RequestId id) const {
  base::MutexLock lock(mutex_);
  const auto found = replies_.find(id);
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
  while (replies_[id].tokens.size() < count) changed_.Wait(mutex_);
}

}  // namespace pagoda::fakes
