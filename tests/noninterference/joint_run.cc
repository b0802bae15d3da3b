// A step of the engine: jobs that are due complete, then come the tenants' doings, then one plan.
#include "tests/noninterference/joint_run.h"

#include <algorithm>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr base::TokenId kStopEvery = 12;
constexpr int kMostSteps = 20'000;

}  // namespace

std::int32_t KeeperBlocks(std::int32_t block_size) {
  return kKeeperSlots * base::DivUp(kKeeperSteps, block_size);
}

JointRun::JointRun(const JointRunOptions& options, const std::vector<Ask>& asks)
    : options_(options),
      executor_({.pool_blocks_per_group = options.config.pool_blocks_per_group,
                 .block_size = options.config.block_size,
                 .max_num_seqs = options.config.max_num_seqs,
                 .max_model_len = options.config.max_model_len,
                 .vocabulary_size = kVocabulary,
                 .max_in_flight = options.config.max_in_flight}),
      sides_(options.config.tenants.size()) {
  PAGODA_CHECK(options_.config.max_in_flight == options_.fence_delay + 1);
  PAGODA_CHECK(options_.fence_delay + kKeeperSteps < 2 * kKeeperEvery);
  const absl::Status status = CheckConfig(options_.config);
  PAGODA_CHECK_MSG(status.ok(), "a scene has a config that is refused");
  auto state = std::make_unique<SchedulerState>(options_.config);
  state_ = state.get();
  scheduler_ = std::make_unique<Scheduler>(std::move(state));
  for (const Ask& ask : asks) {
    num_observed_asks_ += ask.sketch.tenant == options_.observed;
    if (ask.serial) {
      sides_[ask.sketch.tenant].serial.push_back(&ask);
    } else {
      asks_.push_back(&ask);
    }
  }
  std::ranges::sort(asks_, {}, [](const Ask* ask) { return std::pair(ask->at, ask); });
  seen_.outcomes.resize(num_observed_asks_);
  keeping_.sketch.tenant = options_.keeper;
  keeping_.sketch.prompt = {1};
  keeping_.sketch.fields.max_tokens = kKeeperSteps;
  keeping_.sketch.one_request_namespace = true;
}

JointRun::~JointRun() = default;

bool JointRun::IsObserved(const Live& live) const {
  return live.ask->sketch.tenant == options_.observed;
}

base::RequestId JointRun::RequestIn(base::SlotId slot) const {
  return state_->RequestOf(state_->SequenceIn(slot)).request->id;
}

void JointRun::See(Sight::Kind kind, const Live& live, std::int64_t a, std::int64_t b,
                   std::int64_t c) {
  if (!IsObserved(live)) return;
  See({.kind = kind, .step = step_, .request = live.local, .values = {a, b, c}});
}

Observation JointRun::Run() {
  for (; !IsDone(); ++step_) {
    PAGODA_CHECK_MSG(step_ < kMostSteps, "the observed tenant is never answered");
    CompleteJobs();
    Keep();
    Arrive();
    Disturb();
    Plan();
    TakeFinished();
  }
  const SchedulerStats stats = scheduler_->stats();
  seen_.steps = stats.num_steps;
  seen_.preemptions = stats.num_preemptions;
  PAGODA_CHECK(executor_.num_dirty_slots() == 0);
  return std::move(seen_);
}

bool JointRun::IsDone() const { return num_observed_done_ == num_observed_asks_; }

void JointRun::CompleteJobs() {
  while (!submitted_.empty() && submitted_.front().second + 1 + options_.fence_delay <= step_) {
    const auto awaited = executor_.Await();
    PAGODA_CHECK(awaited.ok());
    StepResult result = **awaited;
    PAGODA_CHECK(result.job == submitted_.front().first);
    Spoil(result);
    submitted_.pop_front();
    SeeScores(result);
    outcomes_.clear();
    for (const SampleResult& sample : result.samples) {
      outcomes_.push_back(Judge(sample, result.tokens[sample.tokens.begin]));
    }
    scheduler_->Complete(result, outcomes_);
    scheduler_->Fence(result.job);
    TakeFinished();
  }
}

// The logits of one request, not of all: what a request's own mask or prompt may do to it.
void JointRun::Spoil(StepResult& result) const {
  for (SampleResult& sample : result.samples) {
    const auto id = scheduler_->RequestFor(sample);
    if (!id.has_value() || LiveOf(*id).ask->spoiled_after < 0) continue;
    const NewRequest& request = scheduler_->request(*id);
    const std::int32_t length =
        static_cast<std::int32_t>(sample.position) - request.prompt_length();
    if (length >= LiveOf(*id).ask->spoiled_after) sample.finite = false;
  }
}

SampleOutcome JointRun::Judge(const SampleResult& sample, base::TokenId token) {
  const auto id = scheduler_->RequestFor(sample);
  if (!id.has_value()) return {};
  const Live& live = LiveOf(*id);
  if (!sample.finite) return {.num_accepted = 0, .finish = FinishReason::kNonFinite};
  See(Sight::Kind::kToken, live, sample.choice, sample.position, token);
  const NewRequest& request = scheduler_->request(*id);
  SampleOutcome outcome{.num_accepted = 1, .finish = {}};
  const std::int32_t length = request.choice(sample.choice).num_known() + 1;
  if (live.ask->stops_early && token % kStopEvery == 0) {
    outcome.finish = FinishReason::kStop;
  } else if (length == request.prompt_length() + request.max_tokens()) {
    outcome.finish = FinishReason::kLength;
  }
  return outcome;
}

void JointRun::SeeScores(const StepResult& result) {
  for (const ScoreResult& score : result.prompt_scores) {
    const auto place = scheduler_->PlaceOf(score);
    if (!place.has_value() || !IsObserved(LiveOf(place->request))) continue;
    const Live& live = LiveOf(place->request);
    for (std::uint32_t i = place->next_position - score.first_position; i < score.scores.count;
         ++i) {
      const base::TokenScore& of = result.scores[score.scores.begin + i];
      OutcomeOf(live).scores.push_back(of);
      See(Sight::Kind::kScore, live, score.first_position + i, of.rank,
          static_cast<std::int64_t>(of.of.logprob));
    }
  }
}

void JointRun::Keep() {
  if (step_ % kKeeperEvery == 0) Submit(keeping_);
}

void JointRun::Arrive() {
  for (; next_ask_ < asks_.size() && asks_[next_ask_]->at <= step_; ++next_ask_) {
    Submit(*asks_[next_ask_]);
  }
  for (TenantSide& side : sides_) {
    if (side.serial.empty() || side.is_serial_live) continue;
    const Ask& ask = *side.serial.front();
    if (step_ < std::max(ask.at, side.free_from)) continue;
    side.serial.pop_front();
    side.is_serial_live = true;
    Submit(ask);
  }
}

// What the gate of a server does: a tenant's own bounds, and what can never fit.
void JointRun::Submit(const Ask& ask) {
  const base::TenantId tenant(ask.sketch.tenant);
  TenantSide& side = sides_[tenant.value()];
  lives_.push_back({.ask = &ask, .local = side.num_asked++});
  Live& live = lives_.back();
  RequestSketch sketch = ask.sketch;
  sketch.id = lives_.size();
  const TenantConfig& bounds = options_.config.tenants[tenant.value()];
  const ModelLimits limits = LimitsFor(options_.config, kVocabulary, tenant.value());
  const bool is_full = scheduler_->tenant_stats(tenant).num_waiting >= bounds.max_queued_requests;
  auto request = MakeRequest(sketch, limits, options_.config, scheduler_->epoch(tenant));
  const bool refused = is_full || !request.ok();
  See(Sight::Kind::kGate, live, refused);
  if (!refused) {
    scheduler_->Add(*std::move(request));
    return;
  }
  live.ended = true;
  if (ask.serial) {
    side.is_serial_live = false;
    side.free_from = step_ + 4;
  }
  if (!IsObserved(live)) return;
  OutcomeOf(live).refused = true;
  ++num_observed_done_;
}

void JointRun::Disturb() {
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    Live& live = lives_[i];
    if (live.ended) continue;
    const base::RequestId id(i + 1);
    if (live.ask->cancelled_at >= 0 && live.ask->cancelled_at <= step_) {
      scheduler_->Cancel(id, FinishReason::kCancelled);
      TakeFinished();
      continue;
    }
    const bool is_paused = live.ask->paused_from <= step_ && step_ < live.ask->paused_until;
    if (is_paused != (live.paused_since >= 0)) {
      scheduler_->SetPaused(id, is_paused);
      live.paused_since = is_paused ? step_ : -1;
    }
    if (is_paused && step_ - live.paused_since > options_.slow_reader_grace) {
      scheduler_->Cancel(id, FinishReason::kSlowConsumer);
      TakeFinished();
    }
  }
}

void JointRun::Plan() {
  const StepPlan* plan = scheduler_->TryPlan(base::Instant().PlusMillis(step_));
  TakeFinished();
  PAGODA_CHECK_MSG(plan != nullptr, "a step passed without being one");
  SeeAdmissions(*plan);
  SeePlan(*plan);
  PAGODA_CHECK(executor_.Submit(*plan).ok());
  submitted_.emplace_back(plan->job, step_);
}

void JointRun::SeeAdmissions(const StepPlan& plan) {
  for (const Eviction& eviction : state_->pool.evictions()) {
    const bool is_foreign = eviction.owner != eviction.taker;
    seen_.evictions_between_tenants += is_foreign;
    if (eviction.owner.value() != options_.observed) continue;
    std::int64_t key = 0;
    for (int i = 0; i < 7; ++i) key = key << 8 | eviction.key.bytes[static_cast<std::size_t>(i)];
    See({.kind = Sight::Kind::kEvicted, .step = step_, .request = 0, .values = {key, is_foreign}});
  }
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    Live& live = lives_[i];
    if (live.ended || !IsObserved(live)) continue;
    const LiveRequest& request = state_->requests[*state_->requests.Find(base::RequestId(i + 1))];
    if (request.receipt.preemptions != live.preemptions) {
      live.preemptions = request.receipt.preemptions;
      See(Sight::Kind::kPreempted, live, live.preemptions);
    }
    if (!request.is_running() || request.incarnation == live.incarnation) continue;
    live.incarnation = request.incarnation;
    const Sequence& sequence = state_->SequenceIn(*request.first_open().slot);
    std::int32_t copied = 0;
    for (const BlockCopy& copy : plan.copies) {
      for (std::int32_t b = 0; b < state_->tables.size(sequence.slot); ++b) {
        if (state_->tables.at(sequence.slot, b) != copy.target) continue;
        copied = static_cast<std::int32_t>(copy.num_slots);
        See(Sight::Kind::kCopy, live, b, copied);
      }
    }
    See(Sight::Kind::kMatch, live, sequence.num_sealed, sequence.num_planned);
    AskOutcome& outcome = OutcomeOf(live);
    if (outcome.hits.has_value()) continue;
    outcome.hits = sequence.num_sealed;
    outcome.copied = copied;
    seen_.hits += sequence.num_sealed;
  }
}

void JointRun::SeePlan(const StepPlan& plan) {
  for (std::uint32_t w = 0; w < plan.work.size(); ++w) {
    const WorkItem& item = plan.work[w];
    const Live& live = LiveOf(RequestIn(item.slot));
    if (!IsObserved(live)) continue;
    const auto samples = std::ranges::count_if(
        plan.samples, [&](const SampleRequest& sample) { return plan.rows[sample.row].work == w; });
    See({.kind = Sight::Kind::kWork,
         .step = step_,
         .request = live.local,
         .values = {state_->SequenceIn(item.slot).choice,
                    std::int64_t{item.first_position} << 32 | item.tokens.count,
                    std::int64_t{item.appended_blocks.count} << 32 | item.num_without_kv,
                    samples}});
  }
}

void JointRun::TakeFinished() {
  finished_.clear();
  scheduler_->TakeFinished(finished_);
  for (FinishEvent& event : finished_) {
    Live& live = LiveOf(event.request.id);
    live.ended = true;
    TenantSide& side = sides_[live.ask->sketch.tenant];
    if (live.ask->serial) {
      side.is_serial_live = false;
      side.free_from = step_ + 4;
    }
    if (!IsObserved(live)) continue;
    ++num_observed_done_;
    const Receipt& receipt = event.receipt;
    See(Sight::Kind::kFinished, live, static_cast<std::int64_t>(event.reason), receipt.preemptions);
    See(Sight::Kind::kReceipt, live, receipt.prompt_tokens, receipt.cached_tokens,
        receipt.generated_tokens);
    See(Sight::Kind::kReceipt, live, receipt.queue_steps, receipt.prefill_steps,
        receipt.decode_steps);
    See(Sight::Kind::kReceipt, live, receipt.blocks_touched, receipt.blocks_reused,
        receipt.blocks_peak);
    See(Sight::Kind::kReceipt, live, receipt.block_steps, receipt.discarded_tokens);
    AskOutcome& outcome = OutcomeOf(live);
    outcome.finish = event.reason;
    outcome.receipt = receipt;
    const auto prompt = static_cast<std::ptrdiff_t>(event.request.prompt_length());
    for (const Choice& choice : event.request.choices()) {
      outcome.replies.emplace_back(choice.tokens.begin() + prompt, choice.tokens.end());
      outcome.finishes.push_back(*choice.finish);
    }
  }
}

}  // namespace pagoda::scheduler::testing
