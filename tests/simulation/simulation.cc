#include "tests/simulation/simulation.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/scheduler_state.h"

namespace pagoda::simulation {
namespace {

using scheduler::FinishEvent;
using scheduler::FinishReason;
using scheduler::LiveRequest;
using scheduler::NewRequest;
using scheduler::SampleOutcome;
using scheduler::SampleResult;
using scheduler::StepPlan;
using scheduler::StepResult;
using Kind = Event::Kind;

constexpr int kStuckAfter = 600;  // ticks without a token or an end
constexpr int kGrace = 80;        // ticks after which a slow reader is cut

// What is drawn by tick.
constexpr std::uint64_t kPlanNoMore = 1, kAwaitLater = 2, kFailTwice = 3;

base::RequestId IdOf(std::uint32_t place) { return base::RequestId(place + 1); }

fakes::DigestOptions OptionsFor(const Scenario& scenario) {
  using Timing = fakes::DigestOptions::Timing;
  return {.pool_blocks_per_group = scenario.config.pool_blocks_per_group,
          .block_size = scenario.config.block_size,
          .max_num_seqs = scenario.config.max_num_seqs,
          .max_model_len = scenario.config.max_model_len,
          .vocabulary_size = kVocabulary,
          .max_in_flight = scenario.config.max_in_flight,
          .timing = scenario.executes_late ? Timing::kAtAwait : Timing::kAtSubmit};
}

// The scheduler over a state that stays in sight.
std::unique_ptr<scheduler::Scheduler> Watched(const Scenario& scenario,
                                              scheduler::SchedulerState*& state) {
  const absl::Status status = scheduler::CheckConfig(scenario.config);
  PAGODA_CHECK_MSG(status.ok(), status.ToString());
  auto made = std::make_unique<scheduler::SchedulerState>(scenario.config);
  state = made.get();
  return std::make_unique<scheduler::Scheduler>(std::move(made));
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, std::FILE* trace)
    : scenario_(scenario),
      trace_(trace),
      scheduler_(Watched(scenario, state_)),
      executor_(OptionsFor(scenario)),
      gate_(*state_),
      answers_(scenario),
      auditor_(*state_, scenario, tally_),
      paused_since_(scenario.requests.size(), kReads) {
  recorded_.emplace(*scheduler_, nullptr);
}

void Simulation::RecordInto(engine::Journal& journal) { recorded_.emplace(*scheduler_, &journal); }

bool Simulation::Draw(std::uint64_t purpose, int one_in) const {
  const std::uint64_t draw =
      Mix(Mix(scenario_.lottery, purpose), static_cast<std::uint64_t>(tick_));
  return draw % static_cast<std::uint64_t>(one_in) == 0;
}

// ---- What comes from outside

// As a server does before it is ready: one after the other, each to its end.
void Simulation::RegisterPrefixes() {
  for (; next_arrival_ < scenario_.requests.size(); ++next_arrival_) {
    const RequestScript& script = scenario_.requests[next_arrival_];
    if (!script.is_public_prefix) return;
    const auto place = static_cast<std::uint32_t>(next_arrival_);
    if (!scenario_.left_out.empty() && scenario_.left_out[place]) continue;
    auto request = gate_.Make(script, IdOf(place));
    PAGODA_CHECK(request.ok());
    ++num_live_;
    answers_.Accepted(request->id);
    Say("is registered: request", place);
    const std::int32_t before = state_->pool.num_in(scheduler::BlockState::kPublic);
    PAGODA_CHECK(recorded_->AddPublicPrefix(*std::move(request), script.readers).ok());
    while (num_live_ > 0) Tick();
    const auto length = static_cast<std::int32_t>(script.prompt.size());
    PAGODA_CHECK(state_->pool.num_in(scheduler::BlockState::kPublic) ==
                 before + base::DivUp(length, scenario_.config.block_size));
    ++tally_[Seen::kPublicPrefixes];
  }
}

void Simulation::Arrive() {
  while (next_arrival_ < scenario_.requests.size() &&
         scenario_.requests[next_arrival_].arrives_at <= tick_) {
    const auto place = static_cast<std::uint32_t>(next_arrival_++);
    if (!scenario_.left_out.empty() && scenario_.left_out[place]) continue;
    const RequestScript& script = scenario_.requests[place];
    auto request = gate_.Make(script, IdOf(place));
    const bool fits = request.ok();
    const bool has_room = gate_.HasRoom(script);
    tally_[Seen::kRefused] += !fits;
    tally_[Seen::kQueueRefused] += fits && !has_room;
    if (!fits || !has_room) continue;
    ++tally_[Seen::kAccepted];
    tally_[Seen::kGroups] += request->num_choices() > 1;
    ++num_live_;
    answers_.Accepted(request->id);
    Say("arrives: request", place);
    recorded_->Add(*std::move(request));
  }
}

void Simulation::LetHappen() {
  while (next_event_ < scenario_.events.size() && scenario_.events[next_event_].at <= tick_) {
    Happen(scenario_.events[next_event_++]);
  }
  CutSlowReaders();
}

void Simulation::CutSlowReaders() {
  for (std::uint32_t place = 0; place < paused_since_.size(); ++place) {
    const int since = paused_since_[place];
    if (since == kReads || tick_ - since < kGrace) continue;
    paused_since_[place] = kReads;
    if (!answers_.HasEnded(place)) CancelRequest(place, FinishReason::kSlowConsumer);
  }
}

void Simulation::Happen(const Event& event) {
  switch (event.kind) {
    case Kind::kCancel:
      return CancelRequest(event.subject, FinishReason::kCancelled);
    case Kind::kPause:
      if (!state_->requests.Find(IdOf(event.subject)).has_value()) return;
      ++tally_[Seen::kPauses];
      paused_since_[event.subject] = tick_;
      Say("pauses: request", event.subject);
      return recorded_->SetPaused(IdOf(event.subject), true);
    case Kind::kResume:
      Say("resumes: request", event.subject);
      paused_since_[event.subject] = kReads;
      return recorded_->SetPaused(IdOf(event.subject), false);
    case Kind::kCutSlow:
      return CancelRequest(event.subject, FinishReason::kSlowConsumer);
    case Kind::kFailSubmit:
      fail_submission_ = true;
      return;
    case Kind::kFailAwait:
      fail_await_ = true;
      return;
    case Kind::kSpoilRow:
      spoil_row_ = event.subject;
      return;
    case Kind::kFlush:
      return Flush(event.subject);
    case Kind::kReconfigure:
      return Reconfigure(event.subject);
  }
}

void Simulation::CancelRequest(std::uint32_t place, FinishReason reason) {
  CountCancel(place);
  Say("cancelled: request", place);
  recorded_->Cancel(IdOf(place), reason);
  auditor_.Observe();
}

void Simulation::CountCancel(std::uint32_t place) {
  const auto index = state_->requests.Find(IdOf(place));
  if (!index.has_value()) {
    ++tally_[answers_.WasAccepted(place) ? Seen::kCancelEnded : Seen::kCancelUnknown];
    return;
  }
  const LiveRequest& live = state_->requests[*index];
  tally_[Seen::kCancelPaused] += live.paused;
  tally_[Seen::kCancelSuspect] += live.num_failures >= 2;
  if (!live.is_running()) {
    ++tally_[live.was_admitted ? Seen::kCancelPreempted : Seen::kCancelWaiting];
    return;
  }
  bool is_in_flight = false;
  for (const scheduler::Choice& choice : live.request->choices()) {
    if (!choice.slot.has_value()) continue;
    const scheduler::Sequence& sequence = state_->SequenceIn(*choice.slot);
    is_in_flight |= sequence.num_expected > sequence.num_known ||
                    sequence.num_planned > sequence.num_computed + 1;
    tally_[Seen::kCancelForking] += sequence.waits_for_prompt;
    tally_[Seen::kCancelLastToken] += sequence.last_token_is_in_flight();
  }
  ++tally_[is_in_flight ? Seen::kCancelInFlight : Seen::kCancelRunning];
}

void Simulation::Flush(std::uint32_t tenant) {
  std::optional<base::TenantId> which;
  if (tenant < scenario_.config.tenants.size()) which = base::TenantId(tenant);
  ++tally_[Seen::kFlushes];
  Say("flushes: tenant", tenant);
  recorded_->FlushPrefixCache(which);
  auditor_.Flushed(which);
}

void Simulation::Reconfigure(std::uint32_t list) {
  Say("reconfigures: list", list);
  const absl::Status status = recorded_->Reconfigure(scenario_.other_tenants[list]);
  ++tally_[status.ok() ? Seen::kReconfigurations : Seen::kRefusedReconfigurations];
}

// ---- Steps

void Simulation::PlanSteps() {
  while (static_cast<int>(submitted_.size()) < scenario_.config.max_in_flight) {
    const base::Instant now = AtTick(tick_);
    auditor_.BeforePlan(now);
    const StepPlan* plan = recorded_->TryPlan(now);
    scheduler_->CheckInvariants();
    auditor_.AfterPlan(plan);
    if (plan == nullptr) return;
    decisions_.AddPlan(*plan);
    CountPlan(*plan);
    SayPlan(*plan);
    if (std::exchange(fail_submission_, false)) return FailSubmission(*plan);
    PAGODA_CHECK(executor_.Submit(*plan).ok());
    submitted_.push_back(plan);
    if (!scenario_.plans_eagerly && Draw(kPlanNoMore, 2)) return;
  }
}

void Simulation::CountPlan(const StepPlan& plan) {
  if (plan.work.empty()) {
    ++tally_[Seen::kEmptySteps];
  } else {
    ++tally_[Seen::kSteps];
    tally_[Seen::kStepsOnSmallPools] += scenario_.pool_blocks() <= kSmallPoolBlocks;
    tally_[Seen::kStepsOnLargePools] += scenario_.pool_blocks() >= kLargePoolBlocks;
  }
  tally_[Seen::kCopies] += static_cast<std::int64_t>(plan.copies.size());
  for (const scheduler::BlockCopy& copy : plan.copies) {
    // What others may copy is sealed; what the choices of one request copy need not be.
    const scheduler::BlockState source = state_->pool.state(copy.source);
    tally_[Seen::kForkCopies] += source == scheduler::BlockState::kOwned;
    tally_[Seen::kLaneCopies] += source == scheduler::BlockState::kPublic;
  }
  for (const scheduler::WorkItem& item : plan.work)
    tally_[Seen::kFullHits] += item.num_without_kv > 0;
  std::int64_t own_rows = 0;
  bool is_alone = !plan.work.empty();
  std::optional<base::RequestId> only;
  for (const scheduler::WorkItem& item : plan.work) {
    const LiveRequest& live = state_->RequestOf(state_->SequenceIn(item.slot));
    is_alone &= live.num_failures >= 2 && only.value_or(live.request->id) == live.request->id;
    only = live.request->id;
  }
  tally_[Seen::kTriedAlone] += is_alone;
  for (const scheduler::SampleRequest& sample : plan.samples) {
    own_rows += plan.work[plan.rows[sample.row].work].slot == sample.slot;
  }
  tally_[Seen::kSharedRows] += static_cast<std::int64_t>(plan.samples.size()) - own_rows;
}

void Simulation::Await() {
  if (submitted_.empty()) return;
  const bool is_full = static_cast<int>(submitted_.size()) >= scenario_.config.max_in_flight;
  if (!is_full && Draw(kAwaitLater, 2)) return;
  const auto result = executor_.Await();
  PAGODA_CHECK(result.ok());
  const StepPlan& oldest = *submitted_.front();
  submitted_.pop_front();
  fences_.push_back({oldest.job, tick_ + scenario_.fence_delay});
  if (std::exchange(fail_await_, false)) return FailOldest(oldest);
  StepResult step = **result;
  if (spoil_row_.has_value()) SpoilRow(step);
  Complete(step);
}

void Simulation::Complete(const StepResult& step) {
  for (const scheduler::ScoreResult& score : step.prompt_scores) {
    const auto place = scheduler_->PlaceOf(score);
    if (!place.has_value() || !score.finite) continue;
    const auto scores = std::span(step.scores).subspan(score.scores.begin, score.scores.count);
    answers_.TakeScores(scheduler_->request(place->request), place->next_position, score, scores);
    ++tally_[Seen::kPromptScores];
    last_progress_ = tick_;
  }
  outcomes_.assign(step.samples.size(), {});
  for (std::size_t i = 0; i < step.samples.size(); ++i) {
    outcomes_[i] = Judge(step.samples[i], step.tokens[step.samples[i].tokens.begin]);
  }
  recorded_->Complete(step, outcomes_);
  auditor_.JobEnded(step.job);
  auditor_.Observe();
}

SampleOutcome Simulation::Judge(const SampleResult& sample, base::TokenId token) {
  const auto id = scheduler_->RequestFor(sample);
  tally_[Seen::kStaleSamples] += !id.has_value();
  if (!id.has_value()) return {};
  last_progress_ = tick_;
  if (!sample.finite) return {.num_accepted = 0, .finish = FinishReason::kNonFinite};
  const NewRequest& request = scheduler_->request(*id);
  SampleOutcome outcome;
  outcome.num_accepted = 1;
  const std::int32_t length = request.choice(sample.choice).num_known() + 1;
  if (scenario_.requests[id->value() - 1].stops_early && token % kStopEvery == 0) {
    outcome.finish = FinishReason::kStop;
  } else if (length == request.prompt_length() + request.max_tokens()) {
    outcome.finish = FinishReason::kLength;
  }
  return outcome;
}

// The step never reached the device: those before it end first, as steps fail in order.
void Simulation::FailSubmission(const StepPlan& plan) {
  ++tally_[Seen::kSubmitFailures];
  Say("cannot be submitted: job", plan.job.value());
  while (!submitted_.empty()) {
    const auto result = executor_.Await();
    PAGODA_CHECK(result.ok());
    fences_.push_back({submitted_.front()->job, tick_ + scenario_.fence_delay});
    submitted_.pop_front();
    Complete(**result);
  }
  recorded_->Fail(plan.job);
  auditor_.JobEnded(plan.job);
  auditor_.Observe();
  fences_.push_back({plan.job, tick_ + scenario_.fence_delay});
}

// The jobs behind it run to their ends on what it left, and are void.
void Simulation::FailOldest(const StepPlan& oldest) {
  ++tally_[Seen::kAwaitFailures];
  Say("fails: job", oldest.job.value());
  recorded_->Fail(oldest.job);
  auditor_.JobEnded(oldest.job);
  for (const StepPlan* later : submitted_) {
    PAGODA_CHECK(executor_.Await().ok());
    ++tally_[Seen::kStepsLostBehind];
    if (Draw(kFailTwice, 2)) recorded_->Fail(later->job);  // does nothing
    fences_.push_back({later->job, tick_ + scenario_.fence_delay});
    auditor_.JobEnded(later->job);
  }
  for (const StepPlan* later : submitted_) executor_.Spoil(*later);
  executor_.Spoil(oldest);
  submitted_.clear();
  auditor_.Observe();
}

// One row is not finite, for all who draw from it and for the scores that it gives.
void Simulation::SpoilRow(StepResult& step) {
  const std::size_t num_rows = step.samples.size() + step.prompt_scores.size();
  if (num_rows == 0) return;
  const std::size_t which = *std::exchange(spoil_row_, std::nullopt) % num_rows;
  if (which >= step.samples.size()) {
    step.prompt_scores[which - step.samples.size()].finite = false;
    ++tally_[Seen::kSpoiledRows];
    return;
  }
  const SampleResult& one = step.samples[which];
  const auto id = scheduler_->RequestFor(one);
  if (!id.has_value()) return;
  ++tally_[Seen::kSpoiledRows];
  const std::uint32_t position = one.position;
  for (SampleResult& sample : step.samples) {
    const bool shares = scheduler_->RequestFor(sample) == id && sample.position == position;
    if (shares) sample.finite = false;
  }
}

void Simulation::MoveFences() {
  while (!fences_.empty() && fences_.front().at <= tick_) {
    recorded_->Fence(fences_.front().job);
    auditor_.Fenced(fences_.front().job);
    fences_.pop_front();
  }
}

// ---- Ends

void Simulation::TakeFinished() {
  finished_.clear();
  recorded_->TakeFinished(finished_);
  for (const FinishEvent& event : finished_) {
    Say("ends: request", event.request.id.value() - 1);
    decisions_.AddEnd(event);
    answers_.TakeEnd(event, tally_);
    --num_live_;
    last_progress_ = tick_;
    receipts_block_steps_ += event.receipt.block_steps;
    tally_[Seen::kCachedTokens] += event.receipt.cached_tokens;
    const FinishReason reason = event.reason;
    tally_[Seen::kFinished] += reason == FinishReason::kStop || reason == FinishReason::kLength;
    tally_[Seen::kCancelled] += reason == FinishReason::kCancelled;
    tally_[Seen::kExpired] += reason == FinishReason::kDeadline;
    tally_[Seen::kFailed] += reason == FinishReason::kFailed;
    tally_[Seen::kCutSlow] += reason == FinishReason::kSlowConsumer;
    tally_[Seen::kNonFinite] += reason == FinishReason::kNonFinite;
    const std::int32_t preemptions = event.receipt.preemptions;
    if (event.request.num_choices() > 1) tally_[Seen::kGroupPreemptions] += preemptions;
    tally_[Seen::kReadmissions] += preemptions;
    tally_[Seen::kReservedReadmissions] += std::max(0, preemptions - 2);
  }
}

void Simulation::CheckIdle() {
  PAGODA_CHECK(scheduler_->idle());
  const scheduler::SchedulerStats stats = scheduler_->stats();
  PAGODA_CHECK(stats.blocks_free + stats.blocks_cached + stats.blocks_public + 1 ==
               stats.blocks_total);
  const scheduler::BlockStepTotals totals = scheduler_->block_step_totals();
  PAGODA_CHECK(totals.steps == tally_[Seen::kSteps] + tally_[Seen::kEmptySteps]);
  PAGODA_CHECK(totals.Sum() == totals.steps * stats.blocks_total);
  PAGODA_CHECK(totals.requests == receipts_block_steps_);
  PAGODA_CHECK(executor_.num_dirty_slots() == 0);
  tally_[Seen::kPreemptions] = stats.num_preemptions;
  tally_[Seen::kAdoptions] = stats.num_adoptions;
}

bool Simulation::IsOver() const {
  return next_arrival_ == scenario_.requests.size() && num_live_ == 0 && submitted_.empty() &&
         fences_.empty();
}

void Simulation::Tick() {
  PlanSteps();
  Await();
  MoveFences();
  scheduler_->CheckInvariants();
  TakeFinished();
  ++tick_;
  if (num_live_ == 0) last_progress_ = tick_;
  PAGODA_CHECK_MSG(tick_ - last_progress_ < kStuckAfter, "no token and no end for 600 ticks");
}

Outcome Simulation::Run() {
  tally_[Seen::kRuns] = 1;
  RegisterPrefixes();
  while (!IsOver()) {
    Arrive();
    LetHappen();
    Tick();
  }
  CheckIdle();
  outcome_.decisions = decisions_.value();
  return outcome_;
}

// ---- Telling

void Simulation::Say(const char* what, std::uint64_t number) {
  if (trace_ == nullptr) return;
  std::fprintf(trace_, "%d: %s %llu\n", tick_, what, static_cast<unsigned long long>(number));
}

void Simulation::SayPlan(const StepPlan& plan) {
  if (trace_ == nullptr) return;
  std::fprintf(trace_, "%d: job %llu\n", tick_, static_cast<unsigned long long>(plan.job.value()));
  for (const scheduler::WorkItem& item : plan.work) {
    const scheduler::Sequence& sequence = state_->SequenceIn(item.slot);
    const LiveRequest& live = state_->RequestOf(sequence);
    std::fprintf(trace_, "    request %llu.%u of tenant %u: %u..%u, blocks",
                 static_cast<unsigned long long>(live.request->id.value() - 1), sequence.choice,
                 live.request->tenant.value(), item.first_position,
                 item.first_position + item.tokens.count - 1);
    for (std::int32_t i = 0; i < state_->tables.size(item.slot); ++i) {
      std::fprintf(trace_, " %u", state_->tables.at(item.slot, i).value());
    }
    std::fprintf(trace_, "\n");
  }
  for (const scheduler::ScoreRequest& score : plan.scores) {
    std::fprintf(trace_, "    scores %u from %u on\n", score.tokens.count, score.first_position);
  }
  for (const scheduler::BlockCopy& copy : plan.copies) {
    std::fprintf(trace_, "    copy %u of block %u to %u\n", copy.num_slots, copy.source.value(),
                 copy.target.value());
  }
}

}  // namespace pagoda::simulation
