#include "tests/simulation/simulation.h"

#include <algorithm>

#include "base/check.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr base::TokenId kVocabulary = 97;
constexpr base::TokenId kStopEvery = 12;
constexpr int kStuckAfter = 600;  // ticks without a token or an end

}  // namespace

void SimulationTally::Add(const SimulationTally& other) {
  static_assert(sizeof(SimulationTally) % sizeof(std::int64_t) == 0);
  auto* mine = reinterpret_cast<std::int64_t*>(this);
  const auto* more = reinterpret_cast<const std::int64_t*>(&other);
  for (std::size_t i = 0; i < sizeof(SimulationTally) / sizeof(std::int64_t); ++i)
    mine[i] += more[i];
}

Simulation::Simulation(std::uint64_t seed) : dice_(seed) {
  MakeServer();
  MakeRequests();
}

void Simulation::MakeServer() {
  const int block_size = dice_.OneIn(2) ? 4 : 1 + dice_.Roll(5);
  const int pool = 4 + dice_.Roll(dice_.OneIn(3) ? 50 : 20);
  config_ = SmallConfig(pool, block_size, 1 + dice_.Roll(7));
  config_.max_num_batched_tokens = block_size + config_.max_num_seqs + dice_.Roll(40);
  config_.max_in_flight = 1 + dice_.Roll(2);
  config_.max_namespaces = config_.max_num_seqs + dice_.Roll(3);
  scheduler_ = *Scheduler::Create(config_);
  limits_ = LimitsFor(config_, kVocabulary);
  using Timing = fakes::DigestOptions::Timing;
  executor_ = std::make_unique<fakes::DigestExecutor>(
      fakes::DigestOptions{.pool_blocks_per_group = config_.pool_blocks_per_group,
                           .block_size = block_size,
                           .max_num_seqs = config_.max_num_seqs,
                           .max_model_len = config_.max_model_len,
                           .vocabulary_size = kVocabulary,
                           .max_in_flight = config_.max_in_flight,
                           .timing = dice_.OneIn(2) ? Timing::kAtSubmit : Timing::kAtAwait});
  oracle_ = std::make_unique<SoloOracle>(block_size, config_.max_model_len, kVocabulary);
  fence_delay_ = dice_.Roll(3);
  fail_one_in_ = dice_.OneIn(4) ? 5 + dice_.Roll(40) : 0;
  flush_one_in_ = dice_.OneIn(5) ? 20 + dice_.Roll(40) : 0;
  spoil_row_one_in_ = dice_.OneIn(8) ? 20 + dice_.Roll(40) : 0;
}

void Simulation::MakeRequests() {
  const int capacity = limits_.capacity_blocks * config_.block_size;
  std::vector<std::vector<base::TokenId>> documents(static_cast<std::size_t>(1 + dice_.Roll(4)));
  for (auto& document : documents) {
    for (int i = 0; i <= capacity; ++i) {
      document.push_back(static_cast<base::TokenId>(dice_.Roll(kVocabulary)));
    }
  }
  int now = 0;
  const int count = 4 + dice_.Roll(26);
  for (int i = 0; i < count; ++i) {
    Plan plan;
    now += dice_.Roll(dice_.OneIn(2) ? 3 : 12);
    plan.arrives_at = now;
    const int total = dice_.OneIn(3) ? capacity + dice_.Roll(2) : 2 + dice_.Roll(capacity);
    const int prompt =
        1 + dice_.Roll(std::max(1, dice_.OneIn(2) ? total - 1 : std::min(total - 1, 12)));
    const auto& document =
        documents[static_cast<std::size_t>(dice_.Roll(static_cast<int>(documents.size())))];
    for (int k = 0; k < prompt; ++k) {
      const bool strays = k > prompt / 2 && dice_.OneIn(10);
      plan.sketch.prompt.push_back(strays ? static_cast<base::TokenId>(dice_.Roll(kVocabulary))
                                          : document[static_cast<std::size_t>(k)]);
    }
    int reply = std::max(1, total - prompt + dice_.Roll(2));
    if (!dice_.OneIn(3)) reply = std::min(reply, 1 + dice_.Roll(24));
    if (!dice_.OneIn(9)) plan.sketch.fields.max_tokens = reply;
    if (dice_.OneIn(3)) plan.sketch.fields.n = 1 + dice_.Roll(4);
    plan.sketch.fields.priority = dice_.OneIn(5) ? -1 : 0;
    plan.sketch.fields.temperature = dice_.OneIn(3) ? 0.5f : 1.0f;
    if (dice_.OneIn(9))
      plan.sketch.fields.deadline = base::Instant::FromNanos(now + dice_.Roll(60));
    plan.sketch.one_request_namespace = dice_.OneIn(12);
    plan.sketch.attach_keys = !dice_.OneIn(4);
    if (dice_.OneIn(6)) plan.sketch.salt = std::string(1, static_cast<char>('a' + dice_.Roll(4)));
    if (dice_.OneIn(7)) plan.cancelled_at = now + dice_.Roll(60);
    if (dice_.OneIn(6)) {
      plan.paused_from = now + dice_.Roll(30);
      plan.paused_until = plan.paused_from + 1 + dice_.Roll(60);
    }
    plan.stops_early = dice_.OneIn(2);
    requests_.push_back(plan);
  }
}

void Simulation::Arrive() {
  while (next_arrival_ < requests_.size() && requests_[next_arrival_].arrives_at <= tick_) {
    Plan& plan = requests_[next_arrival_++];
    plan.sketch.id = next_arrival_;
    auto request = MakeRequest(plan.sketch, limits_, config_, scheduler_->epoch());
    if (!request.ok()) {
      ++tally_.refused;
      continue;
    }
    ++tally_.requests;
    tally_.groups += request->num_choices() > 1;
    ++num_live_;
    scheduler_->Add(*std::move(request));
  }
}

void Simulation::Disturb() {
  for (std::size_t i = 0; i < next_arrival_; ++i) {
    const Plan& plan = requests_[i];
    const base::RequestId id(i + 1);
    if (plan.cancelled_at == tick_) scheduler_->Cancel(id, FinishReason::kCancelled);
    if (plan.paused_from == tick_) {
      scheduler_->SetPaused(id, true);
      ++tally_.pauses;
    }
    if (plan.paused_until == tick_) scheduler_->SetPaused(id, false);
  }
  if (flush_one_in_ > 0 && dice_.OneIn(flush_one_in_)) {
    scheduler_->FlushPrefixCache();
    ++tally_.flushes;
  }
}

bool Simulation::ShouldAwait() const {
  return static_cast<int>(submitted_.size()) >= config_.max_in_flight;
}

void Simulation::PlanSteps() {
  while (!ShouldAwait()) {
    const StepPlan* plan = scheduler_->TryPlan(base::Instant::FromNanos(tick_));
    scheduler_->CheckInvariants();
    if (plan == nullptr) return;
    PAGODA_CHECK(plan->plan_tokens.size() <=
                 static_cast<std::size_t>(config_.max_num_batched_tokens));
    tally_.copies += static_cast<std::int64_t>(plan->copies.size());
    for (const WorkItem& item : plan->work) tally_.full_hits += item.num_without_kv > 0;
    PAGODA_CHECK(plan->samples.size() >= plan->rows.size());
    tally_.shared_rows += static_cast<std::int64_t>(plan->samples.size() - plan->rows.size());
    PAGODA_CHECK(executor_->Submit(*plan).ok());
    submitted_.push_back(plan);
    ++tally_.steps;
    // Half the time the next plan waits for this one.
    if (dice_.OneIn(2)) return;
  }
}

void Simulation::FailOldest(const StepPlan& oldest) {
  ++tally_.failures;
  scheduler_->Fail(oldest.job);
  // The jobs behind it run to their ends on what it left, and are void.
  for (const StepPlan* later : submitted_) {
    PAGODA_CHECK(executor_->Await().ok());
    if (dice_.OneIn(2)) scheduler_->Fail(later->job);  // does nothing
    fences_.emplace_back(later->job, tick_ + fence_delay_);
  }
  for (const StepPlan* later : submitted_) executor_->Spoil(*later);
  executor_->Spoil(oldest);
  submitted_.clear();
}

void Simulation::AwaitOldest() {
  if (submitted_.empty()) return;
  const auto result = executor_->Await();
  PAGODA_CHECK(result.ok());
  const StepPlan& oldest = *submitted_.front();
  submitted_.pop_front();
  fences_.emplace_back(oldest.job, tick_ + fence_delay_);
  if (fail_one_in_ > 0 && dice_.OneIn(fail_one_in_)) {
    FailOldest(oldest);
    return;
  }
  StepResult step = **result;
  if (spoil_row_one_in_ > 0 && dice_.OneIn(spoil_row_one_in_)) SpoilRows(step);
  outcomes_.assign(step.samples.size(), {});
  for (std::size_t i = 0; i < step.samples.size(); ++i) {
    outcomes_[i] = Judge(step.samples[i], step.tokens[step.samples[i].tokens.begin]);
  }
  scheduler_->Complete(step, outcomes_);
}

// The logits of one row are not finite, for all who draw from it.
void Simulation::SpoilRows(StepResult& step) {
  if (step.samples.empty()) return;
  const SampleResult& one =
      step.samples[static_cast<std::size_t>(dice_.Roll(static_cast<int>(step.samples.size())))];
  const auto id = scheduler_->RequestFor(one);
  if (!id.has_value()) return;
  ++tally_.non_finite;
  const std::uint32_t position = one.position;
  for (SampleResult& sample : step.samples) {
    const bool shares = scheduler_->RequestFor(sample) == id && sample.position == position;
    if (shares) sample.finite = false;
  }
}

SampleOutcome Simulation::Judge(const SampleResult& sample, base::TokenId token) {
  const auto id = scheduler_->RequestFor(sample);
  if (!id.has_value()) return {};
  last_progress_ = tick_;
  if (!sample.finite) return {.num_accepted = 0, .finish = FinishReason::kNonFinite};
  const NewRequest& request = scheduler_->request(*id);
  SampleOutcome outcome;
  outcome.num_accepted = 1;
  const std::int32_t length = request.choice(sample.choice).num_known() + 1;
  if (requests_[id->value() - 1].stops_early && token % kStopEvery == 0) {
    outcome.finish = FinishReason::kStop;
  } else if (length == request.prompt_length() + request.max_tokens()) {
    outcome.finish = FinishReason::kLength;
  }
  return outcome;
}

void Simulation::MoveFences() {
  while (!fences_.empty() && fences_.front().second <= tick_) {
    scheduler_->Fence(fences_.front().first);
    fences_.pop_front();
  }
}

void Simulation::TakeFinished() {
  finished_.clear();
  scheduler_->TakeFinished(finished_);
  for (const FinishEvent& event : finished_) {
    CheckAnswer(event);
    --num_live_;
    last_progress_ = tick_;
    receipts_block_steps_ += event.receipt.block_steps;
    tally_.cached_tokens += event.receipt.cached_tokens;
    tally_.finished += event.reason == FinishReason::kStop || event.reason == FinishReason::kLength;
    tally_.cancelled += event.reason == FinishReason::kCancelled;
    tally_.expired += event.reason == FinishReason::kDeadline;
    tally_.failed += event.reason == FinishReason::kFailed;
  }
}

void Simulation::CheckAnswer(const FinishEvent& event) {
  const NewRequest& request = event.request;
  std::int32_t generated = 0;
  for (std::uint32_t i = 0; i < request.num_choices(); ++i) {
    generated += request.choice(i).num_known() - request.prompt_length();
    PAGODA_CHECK(request.choice(i).finish.has_value());
    tally_.choices_ended_apart += request.choice(i).finish != event.reason;
    CheckChoice(event, i);
  }
  PAGODA_CHECK(event.receipt.generated_tokens == generated);
  PAGODA_CHECK(event.receipt.cached_tokens < std::max(request.prompt_length(), 1));
  if (request.num_choices() > 1) tally_.group_preemptions += event.receipt.preemptions;
}

void Simulation::CheckChoice(const FinishEvent& event, std::uint32_t index) {
  const NewRequest& request = event.request;
  const auto prompt_length = static_cast<std::size_t>(request.prompt_length());
  const auto all = std::span<const base::TokenId>(request.tokens(index));
  const auto reply = all.subspan(prompt_length);
  if (reply.empty()) return;
  const auto solo =
      oracle_->Answer(all.first(prompt_length), request.sampling(), reply.size(), index);
  PAGODA_CHECK_MSG(std::ranges::equal(reply, solo), "an answer differs from the solo run");
  const FinishReason reason = *request.choice(index).finish;
  if (reason != FinishReason::kStop && reason != FinishReason::kLength) return;
  const bool is_stop =
      requests_[request.id.value() - 1].stops_early && reply.back() % kStopEvery == 0;
  PAGODA_CHECK(is_stop == (reason == FinishReason::kStop));
  PAGODA_CHECK(is_stop || static_cast<std::int32_t>(reply.size()) == request.max_tokens());
}

void Simulation::CheckIdle() {
  PAGODA_CHECK(scheduler_->idle());
  const SchedulerStats stats = scheduler_->stats();
  PAGODA_CHECK(stats.blocks_free + stats.blocks_cached + 1 == stats.blocks_total);
  const BlockStepTotals totals = scheduler_->block_step_totals();
  PAGODA_CHECK(totals.steps == tally_.steps);
  PAGODA_CHECK(totals.Sum() == totals.steps * stats.blocks_total);
  PAGODA_CHECK(totals.requests == receipts_block_steps_);
  PAGODA_CHECK(executor_->num_dirty_slots() == 0);
  tally_.preemptions = stats.num_preemptions;
  tally_.evictions = stats.num_evictions;
  tally_.adoptions = stats.num_adoptions;
}

SimulationTally Simulation::Run() {
  tally_.runs = 1;
  while (next_arrival_ < requests_.size() || num_live_ > 0 || !submitted_.empty() ||
         !fences_.empty()) {
    Arrive();
    Disturb();
    PlanSteps();
    if (ShouldAwait() || !submitted_.empty()) AwaitOldest();
    MoveFences();
    scheduler_->CheckInvariants();
    TakeFinished();
    ++tick_;
    if (num_live_ == 0) last_progress_ = tick_;
    PAGODA_CHECK_MSG(tick_ - last_progress_ < kStuckAfter, "no token and no end for 600 ticks");
  }
  CheckIdle();
  return tally_;
}

}  // namespace pagoda::scheduler::testing
