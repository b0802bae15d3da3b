#include "server/core/response_stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/field_error.h"
#include "server/core/refusal.h"

// Every method decides under the lock and acts after it: locks are leaves. What the decision was
// rides in local variables.
//
//   engine thread       ring_, showable_bytes_, finished_      (OnTokens, OnFinished)
//   text worker         ring_ -> texts_ -> ready_, end_        (Pump; one at a time by text_state_)
//   door                ready_, end_ -> message                (Take)
namespace pagoda::server {
namespace {

using scheduler::FinishReason;

double MillisBetween(base::Instant from, base::Instant to) {
  return static_cast<double>(to.NanosSince(from)) / 1e6;
}

ReplyPart EmptyPart(std::uint32_t num_choices) {
  ReplyPart part;
  part.choices.resize(num_choices);
  return part;
}

ChoiceEnd EndOf(const scheduler::Choice& choice, FinishReason whole) {
  ChoiceEnd end;
  end.reason = choice.finish.value_or(whole);
  if (choice.stop.matched_stop >= 0) {
    end.matched_stop = static_cast<std::uint32_t>(choice.stop.matched_stop);
  }
  if (choice.stop.matched_stop_token >= 0) {
    end.matched_stop_token = static_cast<base::TokenId>(choice.stop.matched_stop_token);
  }
  return end;
}

}  // namespace

struct ResponseStream::Arrived {
  std::vector<std::uint64_t> showable_bytes;
  std::optional<scheduler::FinishEvent> finished;
  std::optional<absl::Status> failure;
  std::optional<base::Instant> first_token_at;

  bool is_last() const { return finished.has_value() || failure.has_value(); }
};

ResponseStream::ResponseStream(Identity identity, const StreamBounds& bounds,
                               ReplyListener& listener, StreamOwner& owner)
    : identity_(std::move(identity)),
      bounds_(bounds),
      listener_(listener),
      owner_(owner),
      texts_(identity_.num_choices),
      ring_(bounds.ring_tokens),
      showable_bytes_(identity_.num_choices, 0),
      ready_(EmptyPart(identity_.num_choices)) {
  PAGODA_CHECK(bounds.resume_at < bounds.pause_at && bounds.pause_at < bounds.ring_tokens);
}

void ResponseStream::Open(AdmissionGate::Permit permit, std::unique_ptr<Preparation> preparation) {
  permit_ = std::move(permit);
  {
    base::MutexLock lock(mutex_);
    preparation_ = std::move(preparation);
    PAGODA_CHECK(MarkForText());
  }
  owner_.PostText(shared_from_this());
}

std::unique_ptr<Preparation> ResponseStream::TakePreparation() {
  base::MutexLock lock(mutex_);
  return std::move(preparation_);
}

std::optional<FinishReason> ResponseStream::end_requested() const {
  base::MutexLock lock(mutex_);
  return end_requested_;
}

void ResponseStream::ReserveScores(std::optional<std::int32_t> width,
                                   std::optional<std::int32_t> prompt_width) {
  const auto reserve = [this](std::optional<std::int32_t> each, ScoreList& list) {
    if (each.has_value()) list.Reserve(bounds_.ring_tokens, static_cast<std::size_t>(*each));
  };
  ScoreList room, prompt_room;
  reserve(width, room);
  reserve(width, scratch_scores_);
  reserve(prompt_width, prompt_room);
  reserve(prompt_width, scratch_prompt_scores_);
  base::MutexLock lock(mutex_);
  std::swap(arrived_scores_, room);
  std::swap(arrived_prompt_scores_, prompt_room);
}

void ResponseStream::SetEcho(std::string text, std::vector<base::TokenId> tokens) {
  echo_.text = std::move(text);
  echo_.tokens = std::move(tokens);
}

void ResponseStream::OnSubmitted() {
  std::optional<FinishReason> why;
  {
    base::MutexLock lock(mutex_);
    submitted_ = true;
    if (!engine_done_) why = end_requested_;
  }
  // Whoever asked before this point could not reach the engine; whoever asks after it does so
  // himself.
  if (why.has_value()) owner_.CancelInEngine(identity_.id, *why);
}

void ResponseStream::OnTokens(const engine::TokenDelivery& delivery, base::Instant now) {
  bool post = false;
  bool first = false;
  bool full = false;
  {
    base::MutexLock lock(mutex_);
    if (engine_done_) return;
    first = !first_token_at_.has_value();
    if (first) first_token_at_ = now;
    TakeTokens(delivery);
    arrived_scores_.Append(delivery.scores, delivery.alternatives);
    showable_bytes_[delivery.choice] = delivery.showable_bytes;
    full = CountArrived(delivery.tokens.size(), now);
    post = MarkForText();
  }
  if (first) permit_.ReleaseTokens();
  // Said again with each delivery while it holds, and always by this thread: no other one can keep
  // the engine from hearing.
  if (full) TellPause(true);
  if (post) owner_.PostText(shared_from_this());
}

void ResponseStream::TakeTokens(const engine::TokenDelivery& delivery) {
  for (const base::TokenId token : delivery.tokens) {
    PAGODA_CHECK_MSG(ring_.TryPush({delivery.choice, token}), "a paused request went on");
  }
}

void ResponseStream::OnPromptScores(const engine::PromptScoreDelivery& delivery,
                                    base::Instant now) {
  bool post = false;
  bool full = false;
  {
    base::MutexLock lock(mutex_);
    if (engine_done_) return;
    PAGODA_CHECK_MSG(arrived_prompt_scores_.size() + delivery.scores.size() <= bounds_.ring_tokens,
                     "a paused request went on");
    arrived_prompt_scores_.Append(delivery.scores, delivery.alternatives);
    full = CountArrived(delivery.scores.size(), now);
    post = MarkForText();
  }
  if (full) TellPause(true);
  if (post) owner_.PostText(shared_from_this());
}

bool ResponseStream::CountArrived(std::size_t count, base::Instant now) {
  num_unread_tokens_ += count;
  if (num_unread_tokens_ < bounds_.pause_at) return false;
  want_pause_ = true;
  if (!full_since_.has_value()) full_since_ = now;
  return true;
}

void ResponseStream::OnFinished(scheduler::FinishEvent event) {
  bool post = false;
  {
    base::MutexLock lock(mutex_);
    if (!engine_done_) {
      engine_done_ = true;
      finished_.emplace(std::move(event));
      post = MarkForText();
    }
  }
  if (post) owner_.PostText(shared_from_this());
}

void ResponseStream::Fail(absl::Status status) {
  PAGODA_CHECK(!status.ok());
  bool post = false;
  {
    base::MutexLock lock(mutex_);
    if (engine_done_) return;
    engine_done_ = true;
    failure_ = std::move(status);
    post = MarkForText();
  }
  if (post) owner_.PostText(shared_from_this());
}

bool ResponseStream::MarkForText() {
  switch (text_state_) {
    case TextState::kIdle:
      text_state_ = TextState::kQueued;
      return true;
    case TextState::kRunning:
      text_state_ = TextState::kRunAgain;
      return false;
    case TextState::kQueued:
    case TextState::kRunAgain:
      return false;
  }
  return false;
}

void ResponseStream::BeginText() {
  base::MutexLock lock(mutex_);
  PAGODA_CHECK(text_state_ == TextState::kQueued);
  text_state_ = TextState::kRunning;
}

bool ResponseStream::EndText() {
  base::MutexLock lock(mutex_);
  // An ended stream has nothing left to do; being posted then would count against no permit.
  const bool again = text_state_ == TextState::kRunAgain && !end_.has_value();
  text_state_ = again ? TextState::kQueued : TextState::kIdle;
  return again;
}

void ResponseStream::TakeArrived(Arrived& arrived) {
  scratch_.clear();
  scratch_.reserve(bounds_.ring_tokens);
  scratch_scores_.clear();
  scratch_prompt_scores_.clear();
  base::MutexLock lock(mutex_);
  std::swap(scratch_scores_, arrived_scores_);
  std::swap(scratch_prompt_scores_, arrived_prompt_scores_);
  while (!ring_.empty()) scratch_.push_back(ring_.Pop());
  arrived.showable_bytes = showable_bytes_;
  // Taken together with the tokens before it: an end is made only when every token is in its part.
  arrived.finished = std::exchange(finished_, std::nullopt);
  arrived.failure = std::exchange(failure_, std::nullopt);
  arrived.first_token_at = first_token_at_;
}

void ResponseStream::AppendText(const Arrived& arrived, const text::Tokenizer& tokenizer,
                                ReplyPart& part) {
  const std::span<const base::TokenScore> scores = scratch_scores_.scores;
  PAGODA_CHECK(scores.empty() || scores.size() == scratch_.size());
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    const auto& [choice, token] = scratch_[i];
    part.choices[choice].tokens.push_back(token);
    if (!scores.empty()) {
      part.choices[choice].scores.Append(scores.subspan(i, 1), scratch_scores_.alternatives);
    }
    const bool silent = std::ranges::find(silent_tokens_, token) != silent_tokens_.end();
    if (!silent) texts_[choice].Append(text::TextBytes(tokenizer, token, control_));
  }
  part.prompt.scores.Append(scratch_prompt_scores_.scores, scratch_prompt_scores_.alternatives);
  // A request that ended takes all that may be shown in Finish; held bytes were released by the
  // engine.
  for (std::uint32_t i = 0; i < texts_.size(); ++i) {
    std::string& text = part.choices[i].text;
    if (arrived.finished.has_value()) {
      text += texts_[i].Finish(arrived.finished->request.choice(i).stop.text_end);
    } else {
      text += texts_[i].Take(arrived.showable_bytes[i]);
    }
  }
}

std::optional<ReplyEnd> ResponseStream::Pump(const text::Tokenizer& tokenizer, base::Instant now) {
  Arrived arrived;
  TakeArrived(arrived);
  ReplyPart fresh = EmptyPart(identity_.num_choices);
  std::swap(fresh.prompt, echo_);
  AppendText(arrived, tokenizer, fresh);
  std::optional<ReplyEnd> end;
  if (arrived.is_last()) end = MakeEnd(arrived, now);

  ReplyPart part;
  {
    base::MutexLock lock(mutex_);
    part = *std::exchange(ready_, std::nullopt);
  }
  part.Append(fresh);
  bool notify = false;
  bool close = false;
  ReplyPart dropped = EmptyPart(identity_.num_choices);
  {
    base::MutexLock lock(mutex_);
    if (end.has_value()) {
      end_ = end;
      ended_at_ = now;
    }
    if (discard_) {
      num_unread_tokens_ -= part.num_counted();
      std::swap(dropped, part);
    }
    notify = reader_waits_ && (end_.has_value() || part.has_content());
    if (notify) reader_waits_ = false;
    ready_ = std::move(part);
    close = discard_ && TryClose();
  }
  if (close) Close();
  if (notify) listener_.OnReplyReady();
  return end;
}

ReplyEnd ResponseStream::MakeEnd(const Arrived& arrived, base::Instant now) const {
  ReplyEnd end;
  end.total_ms = MillisBetween(identity_.arrival, now);
  end.queue_ms = end.total_ms;
  if (arrived.first_token_at.has_value()) {
    end.first_token_ms = MillisBetween(identity_.arrival, *arrived.first_token_at);
  }
  if (arrived.failure.has_value()) {
    end.status = *arrived.failure;
    return end;
  }
  const scheduler::FinishEvent& event = *arrived.finished;
  end.reason = event.reason;
  end.status = StatusOf(end.reason, event.was_admitted);
  if (event.was_admitted) end.queue_ms = MillisBetween(identity_.arrival, event.admitted_at);
  end.has_receipt = true;
  end.receipt = event.receipt;
  end.seed = event.request.sampling().seed;
  end.max_tokens = event.request.max_tokens();
  for (const scheduler::Choice& choice : event.request.choices()) {
    end.choices.push_back(EndOf(choice, event.reason));
  }
  return end;
}

ResponseStream::Taken ResponseStream::Take(ReplyPart& part) {
  Taken taken = Taken::kNothing;
  bool close = false;
  bool resume = false;
  part.choices.resize(identity_.num_choices);
  part.Clear();
  {
    base::MutexLock lock(mutex_);
    if (ready_.has_value() && !discard_) {
      num_unread_tokens_ -= ready_->num_counted();
      // Trading places keeps the capacity of both.
      std::swap(part.prompt, ready_->prompt);
      std::swap(part.choices, ready_->choices);
    }
    if (ready_.has_value() && end_.has_value()) {
      part.end = end_;
      taken = Taken::kLast;
      close = TryClose();
    } else {
      taken = part.has_content() ? Taken::kPart : Taken::kNothing;
    }
    reader_waits_ = taken == Taken::kNothing;
    if (want_pause_ && num_unread_tokens_ <= bounds_.resume_at) {
      want_pause_ = false;
      full_since_.reset();
      resume = !engine_done_;
    }
  }
  if (resume) TellPause(false);
  if (close) Close();
  return taken;
}

void ResponseStream::Cancel(FinishReason why) { RequestEnd(why, /*discard=*/true); }

void ResponseStream::RequestEnd(FinishReason why, bool discard) {
  bool tell_engine = false;
  bool close = false;
  ReplyPart dropped = EmptyPart(identity_.num_choices);
  {
    base::MutexLock lock(mutex_);
    if (discard && !discard_) {
      discard_ = true;
      if (ready_.has_value()) {
        num_unread_tokens_ -= ready_->num_counted();
        std::swap(dropped, *ready_);
      }
    }
    if (!end_requested_.has_value()) {
      end_requested_ = why;
      tell_engine = submitted_ && !engine_done_;
    }
    close = discard_ && end_.has_value() && TryClose();
  }
  if (close) Close();
  if (tell_engine) owner_.CancelInEngine(identity_.id, why);
}

void ResponseStream::CheckReader(base::Instant now, std::int64_t grace_nanos) {
  bool slow = false;
  bool close = false;
  ReplyPart dropped = EmptyPart(identity_.num_choices);
  {
    base::MutexLock lock(mutex_);
    if (!engine_done_) {
      slow = full_since_.has_value() && now.NanosSince(*full_since_) >= grace_nanos;
    } else if (ended_at_.has_value() && !closed_ && ready_.has_value() &&
               now.NanosSince(*ended_at_) >= grace_nanos) {
      // The client never came for the end: what is left of the reply goes, and the end says why.
      std::swap(dropped, *ready_);
      num_unread_tokens_ = 0;
      if (end_->status.ok()) end_->status = StatusOf(FinishReason::kSlowConsumer, true);
      close = TryClose();
    }
  }
  if (close) Close();
  if (slow) RequestEnd(FinishReason::kSlowConsumer, /*discard=*/false);
}

bool ResponseStream::TryClose() {
  if (closed_ || !end_.has_value()) return false;
  closed_ = true;
  return true;
}

void ResponseStream::Close() {
  owner_.OnClosed(*this);
  // Last: whoever waits for the gate to empty may take the owner away.
  permit_.Release();
}

void ResponseStream::TellPause(bool paused) {
  // Two threads may tell at once, so an old word can arrive after a new one: whoever has spoken
  // looks again and puts it right. The last word is therefore always the last wish.
  while (true) {
    owner_.PauseInEngine(identity_.id, paused);
    base::MutexLock lock(mutex_);
    if (engine_done_ || want_pause_ == paused) return;
    paused = want_pause_;
  }
}

bool ResponseStream::closed() const {
  base::MutexLock lock(mutex_);
  return closed_;
}

std::size_t ResponseStream::num_unread_tokens() const {
  base::MutexLock lock(mutex_);
  return num_unread_tokens_;
}

}  // namespace pagoda::server
