#include "engine/engine_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/runtime/log.h"

// One turn:
//
//   messages --> Scheduler --TryPlan--> plan --Submit--> in flight --Await--> result
//                    ^                                                          |
//                    +------- Complete(outcomes), Fence <---- stops, OnTokens <-+
//                    +------- Fail, Fence               <---- error
//
// Finished requests are handed out between planning and submitting, so that a cancelled one never
// waits for a step.

namespace pagoda::engine {

using scheduler::FinishEvent;
using scheduler::FinishReason;
using scheduler::SampleOutcome;

EngineLoop::EngineLoop(const EngineOptions& options, scheduler::Scheduler& scheduler,
                       Executor& executor, OutputSink& sink, const base::ClockSource& clock)
    : scheduler_(scheduler),
      recorded_(scheduler, options.journal),
      executor_(executor),
      sink_(sink),
      clock_(clock),
      stops_(options.eos_tokens),
      max_consecutive_failed_steps_(options.max_consecutive_failed_steps),
      in_flight_(static_cast<std::size_t>(executor.max_in_flight())) {
  PAGODA_CHECK(options.mailbox_capacity > 0);
  PAGODA_CHECK(max_consecutive_failed_steps_ > 0);
  const auto capacity = static_cast<std::size_t>(options.mailbox_capacity);
  live_.reserve(capacity);
  outcomes_.reserve(static_cast<std::size_t>(scheduler.max_num_seqs()));
  finished_.reserve(capacity);
}

void EngineLoop::Handle(Message message) {
  switch (message.kind) {
    case Message::Kind::kNone:
      return;
    case Message::Kind::kSubmit:
      return Admit(*std::move(message.request));
    case Message::Kind::kAddPublicPrefix: {
      const std::uint64_t ticket = message.ticket;
      last_answer_ = {.ticket = ticket, .status = AddPublicPrefix(std::move(message))};
      return;
    }
    case Message::Kind::kCancel:
      return recorded_.Cancel(message.id, message.reason);
    case Message::Kind::kSetPaused:
      return SetPaused(message.id, message.paused);
    case Message::Kind::kFlushPrefixCache:
      last_answer_ = {.ticket = message.ticket,
                      .blocks_dropped = recorded_.FlushPrefixCache(message.tenant),
                      .status = absl::OkStatus()};
      return;
    case Message::Kind::kReconfigure:
      last_answer_ = {.ticket = message.ticket,
                      .status = recorded_.Reconfigure(std::move(message.tenants))};
      return;
  }
}

void EngineLoop::Admit(scheduler::NewRequest request) {
  PAGODA_CHECK(live_.size() < live_.capacity());
  PAGODA_CHECK(FindLive(request.id) == nullptr);
  live_.push_back({.id = request.id});
  if (stats_.failed) {
    return Finish({.request = std::move(request), .reason = FinishReason::kFailed, .receipt = {}});
  }
  recorded_.Add(std::move(request));
}

absl::Status EngineLoop::AddPublicPrefix(Message message) {
  PAGODA_CHECK(live_.size() < live_.capacity());
  const base::RequestId id = message.request->id;
  PAGODA_CHECK(FindLive(id) == nullptr);
  if (stats_.failed) return absl::UnavailableError("the engine has failed");
  absl::Status status =
      recorded_.AddPublicPrefix(*std::move(message.request), std::move(message.readers));
  if (status.ok()) live_.push_back({.id = id});
  return status;
}

void EngineLoop::SetPaused(base::RequestId id, bool paused) {
  LiveRequest* live = FindLive(id);
  if (live == nullptr || live->paused == paused) return;
  live->paused = paused;
  stats_.num_paused += paused ? 1 : -1;
  recorded_.SetPaused(id, paused);
}

EngineLoop::LiveRequest* EngineLoop::FindLive(base::RequestId id) {
  const auto found =
      std::find_if(live_.begin(), live_.end(), [id](const LiveRequest& l) { return l.id == id; });
  return found == live_.end() ? nullptr : &*found;
}

EngineLoop::Turn EngineLoop::RunTurn() {
  if (stats_.failed) return Turn::kIdle;
  const bool submitted = !in_flight_.full() && PlanAndSubmit();
  if (in_flight_.full() || (!submitted && !in_flight_.empty())) {
    AwaitOldest();
    DeliverFinished();
    return Turn::kWorked;
  }
  return submitted ? Turn::kWorked : Turn::kIdle;
}

base::Instant EngineLoop::NextWake() const {
  return stats_.failed ? base::Instant::Never() : scheduler_.NextDeadline();
}

// Returns whether the scheduler had a step to run; one that could not be submitted counts, because
// it can be tried again.
bool EngineLoop::PlanAndSubmit() {
  const scheduler::StepPlan* plan = recorded_.TryPlan(clock_.Now());
  DeliverFinished();
  if (plan == nullptr) return false;
  const base::JobId job = plan->job;
  PAGODA_CHECK(job > last_planned_);
  const absl::Status status = executor_.Submit(*plan);
  if (!status.ok()) {
    // Steps fail in order, so the ones before it end first.
    while (!in_flight_.empty()) AwaitOldest();
    last_planned_ = job;
    HandleFailure(job, status);
    return true;
  }
  last_planned_ = job;
  PAGODA_CHECK(in_flight_.TryPush(base::JobId(job)));
  return true;
}

void EngineLoop::AwaitOldest() {
  const auto result = executor_.Await();
  const base::JobId job = in_flight_.Pop();
  if (!result.ok()) return HandleFailure(job, result.status());
  const scheduler::StepResult& step = **result;
  PAGODA_CHECK(step.job == job);
  outcomes_.clear();
  for (const scheduler::ScoreResult& score : step.prompt_scores) DeliverScores(step, score);
  for (const scheduler::SampleResult& sample : step.samples) {
    outcomes_.push_back(Judge(step, sample));
  }
  recorded_.Complete(step, outcomes_);
  MoveFence(job);
  consecutive_failed_steps_ = 0;
  ++stats_.steps;
  stats_.last_progress = clock_.Now();
}

// Scores that a preempted request was given before are not shown again.
void EngineLoop::DeliverScores(const scheduler::StepResult& step,
                               const scheduler::ScoreResult& result) {
  PAGODA_CHECK(result.scores.begin + result.scores.count <= step.scores.size());
  const auto place = scheduler_.PlaceOf(result);
  if (!place.has_value() || !result.finite) return;
  PAGODA_CHECK(place->next_position >= result.first_position);
  const auto scores = std::span(step.scores).subspan(result.scores.begin, result.scores.count);
  sink_.OnPromptScores({.request = place->request,
                        .scores = scores.subspan(place->next_position - result.first_position),
                        .alternatives = step.alternatives});
}

// Decides what a choice takes of the sample and shows it. A sample of one that ended meanwhile, or
// that a preempted one has had before, gives nothing.
SampleOutcome EngineLoop::Judge(const scheduler::StepResult& step,
                                const scheduler::SampleResult& sample) {
  PAGODA_CHECK(sample.tokens.begin + sample.tokens.count <= step.tokens.size());
  PAGODA_CHECK(sample.scores.begin + sample.scores.count <= step.scores.size());
  PAGODA_CHECK(sample.scores.count == 0 || sample.scores.count == sample.tokens.count);
  const auto tokens = std::span(step.tokens).subspan(sample.tokens.begin, sample.tokens.count);
  const auto scores = std::span(step.scores).subspan(sample.scores.begin, sample.scores.count);
  const std::optional<base::RequestId> id = scheduler_.RequestFor(sample);
  if (!id) return {};
  if (!sample.finite) return {.finish = FinishReason::kNonFinite};
  if (tokens.empty()) return {.finish = FinishReason::kNothingAllowed};
  const scheduler::NewRequest& request = scheduler_.request(*id);
  const std::int32_t num_known = request.choice(sample.choice).num_known();
  PAGODA_CHECK(num_known >= request.prompt_length());
  scheduler::StopProgress& progress = scheduler_.stop_progress(*id, sample.choice);
  const StopVerdict verdict =
      stops_.Evaluate(TermsOf(request), num_known - request.prompt_length(), tokens, progress);
  if (verdict.outcome.num_accepted > 0) {
    sink_.OnTokens({.request = *id,
                    .choice = sample.choice,
                    .tokens = tokens.first(verdict.outcome.num_accepted),
                    .showable_bytes = verdict.showable_bytes,
                    .scores = scores.empty() ? scores : scores.first(verdict.outcome.num_accepted),
                    .alternatives = step.alternatives});
  }
  if (verdict.outcome.finish) {
    progress.text_end = verdict.text_bytes;
    progress.matched_stop = verdict.matched_stop;
    progress.matched_stop_token = verdict.matched_stop_token;
  }
  return verdict.outcome;
}

// The failed step and all planned after it are void. Later ones may still be running: their
// results are waited for and dropped, because the scheduler plans from before the failed one again.
void EngineLoop::HandleFailure(base::JobId job, const absl::Status& why) {
  ++stats_.failed_steps;
  ++consecutive_failed_steps_;
  base::LogError(absl::StrCat("step ", job.value(), " failed: ", why.ToString()));
  recorded_.Fail(job);
  DiscardInFlight();
  MoveFence(job);
  if (!stats_.failed && consecutive_failed_steps_ >= max_consecutive_failed_steps_) GiveUp(why);
}

void EngineLoop::DiscardInFlight() {
  while (!in_flight_.empty()) {
    const auto result = executor_.Await();
    const base::JobId job = in_flight_.Pop();
    PAGODA_CHECK(!result.ok() || (*result)->job == job);
  }
}

// With nothing in flight the fence covers every step so far, voided ones included.
void EngineLoop::MoveFence(base::JobId done) {
  if (in_flight_.empty()) {
    recorded_.Fence(last_planned_);
  } else if (done < in_flight_.front()) {
    recorded_.Fence(done);
  }
}

void EngineLoop::GiveUp(const absl::Status& why) {
  EndAll(FinishReason::kFailed);
  stats_.failed = true;
  sink_.OnEngineFailed(why);
}

void EngineLoop::EndAll(FinishReason reason) {
  // By id, so that the order does not depend on who ended before.
  std::sort(live_.begin(), live_.end(),
            [](const LiveRequest& a, const LiveRequest& b) { return a.id < b.id; });
  for (const LiveRequest& live : live_) recorded_.Cancel(live.id, reason);
  while (!in_flight_.empty()) {
    const auto result = executor_.Await();
    const base::JobId job = in_flight_.Pop();
    if (result.ok()) {
      outcomes_.assign((*result)->samples.size(), SampleOutcome{});
      recorded_.Complete(**result, outcomes_);
    } else {
      recorded_.Fail(job);
    }
    MoveFence(job);
  }
  DeliverFinished();
  PAGODA_CHECK(live_.empty());
}

void EngineLoop::DeliverFinished() {
  finished_.clear();
  recorded_.TakeFinished(finished_);
  for (FinishEvent& event : finished_) Finish(std::move(event));
  finished_.clear();
}

void EngineLoop::Finish(FinishEvent event) {
  LiveRequest* live = FindLive(event.request.id);
  PAGODA_CHECK(live != nullptr);
  if (live->paused) --stats_.num_paused;
  *live = live_.back();
  live_.pop_back();
  ++stats_.num_finished;
  sink_.OnFinished(std::move(event));
}

EngineStats EngineLoop::stats() const {
  EngineStats stats = stats_;
  stats.scheduler = scheduler_.stats();
  stats.is_reconfiguring = scheduler_.is_reconfiguring();
  return stats;
}

}  // namespace pagoda::engine
