#include "scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/token_score.h"
#include "scheduler/completion.h"
#include "scheduler/lifecycle.h"
#include "scheduler/planning.h"
#include "scheduler/reconfiguration.h"
#include "scheduler/scheduler_state.h"
#include "scheduler/snapshot.h"

namespace pagoda::scheduler {
namespace {

// Jobs that may be done but not yet fenced, beside those in flight.
constexpr std::int32_t kMaxFenceLag = 4;
// What the opened sequences of one plan may bring along, unless one request alone is longer.
constexpr std::int64_t kHistoryRoomTokens = 64 * 1024;

std::size_t MaxLive(const SchedulerConfig& config) {
  return static_cast<std::size_t>(config.max_queued_requests) +
         static_cast<std::size_t>(config.max_num_seqs);
}

std::int32_t MaxBlocksPerSequence(const SchedulerConfig& config) {
  return base::DivUp(config.max_model_len, config.block_size);
}

// Every array of a plan at its bound.
void ReservePlan(const SchedulerState& state, StepPlan& plan) {
  const SchedulerConfig& config = state.config;
  const auto slots = static_cast<std::size_t>(config.max_num_seqs);
  const auto blocks = static_cast<std::size_t>(config.pool_blocks_per_group[0]);
  const auto tokens = static_cast<std::size_t>(config.max_num_batched_tokens);
  const auto jobs = static_cast<std::size_t>(config.max_in_flight) + 1;
  const auto room = static_cast<std::size_t>(state.HistoryRoom()) * state.tenants.size();
  const auto block_size = static_cast<std::size_t>(config.block_size);
  plan.closed.reserve(slots);
  plan.opened.reserve(slots);
  plan.work.reserve(slots);
  const auto rows = static_cast<std::size_t>(config.max_logit_rows_per_step);
  plan.rows.reserve(rows);
  plan.scores.reserve(slots);
  plan.samples.reserve(slots);
  // Admissions and adoptions ahead within the room, blocks handed out, and blocks adopted by
  // completions since the last plan of their sequence.
  const std::size_t adopted = jobs * slots * (tokens / block_size + 1);
  plan.block_appends.reserve(std::min(slots * state.tables.max_blocks(),
                                      2 * (room / block_size + slots) + blocks + adopted));
  plan.zeros.reserve(blocks);
  plan.copies.reserve(slots);
  plan.memory_effects.reserve(blocks + slots);
  plan.plan_tokens.reserve(tokens);
  constexpr std::size_t kTokensOfOpening =
      base::kMaxStopTokenIds + base::kMaxBadWordEntries + base::kMaxLogprobTokenIds;
  plan.tokens.reserve(room + rows + slots * kTokensOfOpening);
  plan.allowed_words.reserve(slots * base::DivUp<std::size_t>(config.vocabulary_size, 32));
  plan.logit_bias.reserve(slots * ModelLimits::kMaxLogitBiases);
}

std::int64_t QueuedTokens(const SchedulerState& state, const TenantQueue& queue) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Choice& choice : state.requests[queue.at(i)].request->choices()) {
      tokens += choice.is_open() ? choice.num_known() : 0;
    }
  }
  return tokens;
}

// While new bounds wait, either may be the gate's.
std::int32_t MostWaiting(const SchedulerState& state, base::TenantId tenant) {
  const std::int32_t now = state.tenants[tenant.value()].config.max_queued_requests;
  if (state.pending_tenants.empty()) return now;
  return std::max(now, state.pending_tenants[tenant.value()].max_queued_requests);
}

}  // namespace

std::vector<TenantShare> SharesOf(std::span<const TenantConfig> tenants) {
  std::vector<TenantShare> shares;
  for (const TenantConfig& tenant : tenants) {
    shares.push_back({.reserve_blocks = tenant.reserve_blocks, .isolated = tenant.isolated});
  }
  return shares;
}

std::int32_t SchedulerState::HistoryRoom() const {
  const std::int64_t all = std::int64_t{config.max_num_seqs} * config.max_model_len;
  return static_cast<std::int32_t>(
      std::min(all, std::max(kHistoryRoomTokens, std::int64_t{config.max_model_len})));
}

SchedulerState::SchedulerState(const SchedulerConfig& given)
    : config(WithDefaults(given)),
      cache({.num_blocks = given.pool_blocks_per_group[0],
             .num_tenants = static_cast<std::int32_t>(config.tenants.size()),
             .max_namespaces = given.max_namespaces,
             .key_domain = given.key_domain}),
      pool({.num_blocks = given.pool_blocks_per_group[0],
            .num_slots = given.max_num_seqs,
            .max_unfenced_jobs = given.max_in_flight + kMaxFenceLag,
            .public_blocks = given.public_blocks,
            .tenants = SharesOf(config.tenants)},
           cache),
      public_lane(given.block_size, given.pool_blocks_per_group[0]),
      tables(static_cast<std::size_t>(given.max_num_seqs),
             static_cast<std::size_t>(MaxBlocksPerSequence(given))),
      block_owners(static_cast<std::size_t>(given.pool_blocks_per_group[0])),
      requests(MaxLive(given)),
      sequences(static_cast<std::size_t>(given.max_num_seqs)),
      block_steps_of_slot(sequences.size()),
      slots(static_cast<std::size_t>(given.max_num_seqs)),
      jobs(static_cast<std::size_t>(given.max_in_flight + kMaxFenceLag), slots.size()),
      draft(slots.size(), static_cast<std::size_t>(given.pool_blocks_per_group[0])),
      plans(static_cast<std::size_t>(given.max_in_flight) + 1),
      hits(tables.max_blocks()),
      taken(tables.max_blocks()) {
  for (const TenantConfig& tenant : config.tenants) {
    queues.emplace_back(requests, MaxLive(given));
    tenants.emplace_back().config = tenant;
  }
  derives_attention_chunks = given.max_attention_chunks_per_step == 0;
  SetFloors(*this);
  turns.reserve(tenants.size());
  running.reserve(slots.size());
  snapshot.reserve(slots.size());
  unserved.reserve(slots.size());
  fork_copies.reserve(slots.size());
  finished.reserve(MaxLive(given));
  for (StepPlan& plan : plans) ReservePlan(*this, plan);
}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const SchedulerConfig& config) {
  PAGODA_RETURN_IF_ERROR(CheckConfig(config));
  return std::make_unique<Scheduler>(std::make_unique<SchedulerState>(config));
}

Scheduler::Scheduler(std::unique_ptr<SchedulerState> state) : state_(std::move(state)) {}
Scheduler::~Scheduler() = default;

std::size_t Scheduler::num_tenants() const { return state_->tenants.size(); }

std::int32_t Scheduler::block_size() const { return state_->config.block_size; }

std::int32_t Scheduler::max_num_seqs() const { return state_->config.max_num_seqs; }

std::int32_t Scheduler::CapacityBlocks(const SchedulerConfig& config, base::TenantId tenant) {
  return CapacityOf(config.pool_blocks_per_group[0] - 1 - config.public_blocks,
                    WithDefaults(config).tenants, tenant);
}

std::int32_t Scheduler::MaxChoices(const SchedulerConfig& config, base::TenantId tenant) {
  const SchedulerConfig whole = WithDefaults(config);
  return FloorsOf(whole, whole.tenants, tenant).slots;
}

absl::Status Scheduler::Reconfigure(std::vector<TenantConfig> tenants) {
  return AskForTenants(*state_, std::move(tenants));
}

bool Scheduler::is_reconfiguring() const { return !state_->pending_tenants.empty(); }

void Scheduler::Add(NewRequest request) {
  SchedulerState& state = *state_;
  PAGODA_CHECK(request.tenant.value() < state.queues.size());
  PAGODA_CHECK(request.prompt_length() > 0);
  PAGODA_CHECK(request.one_request_namespace || request.cache_namespace.has_value());
  PAGODA_CHECK(request.prompt_length() + request.max_tokens() <= state.config.max_model_len);
  PAGODA_CHECK_MSG(
      request.WorstCaseBlocks(state.block_size()) <= state.pool.Capacity(request.tenant),
      "a request that can never fit the pool was let in");
  PAGODA_CHECK(request.allowed_words().size() * 32 <
               std::size_t{state.config.vocabulary_size} + 32);
  Tenant& tenant = state.tenants[request.tenant.value()];
  PAGODA_CHECK_MSG(static_cast<std::int32_t>(request.num_choices()) <= tenant.floors.slots,
                   "a request with more choices than its tenant has slots was let in");
  PAGODA_CHECK_MSG(tenant.num_new < MostWaiting(state, request.tenant),
                   "more requests than the gate may let in for a tenant");
  ++tenant.num_new;
  state.num_with_deadline += !request.deadline().is_never();
  const RequestIndex index = state.requests.Add(std::move(request));
  LiveRequest& live = state.requests[index];
  live.key_epoch =
      live.request->has_keys() ? live.request->epoch() : state.cache.epoch(live.request->tenant);
  live.added_at_step = state.num_steps;
  live.receipt.prompt_tokens = live.request->prompt_length();
  state.QueueOf(live).Insert(index);
}

absl::Status Scheduler::AddPublicPrefix(NewRequest request, std::vector<base::TenantId> readers) {
  SchedulerState& state = *state_;
  const std::int32_t needed = base::DivUp(request.prompt_length(), state.block_size());
  std::int32_t left = state.config.public_blocks - state.pool.num_in(BlockState::kPublic);
  for (const LiveRequest& live : state.requests.all()) {
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    PAGODA_CHECK_MSG(live.is_public_prefix, "a public prefix comes after the first request");
    left -= base::DivUp(live.request->prompt_length(), state.block_size());
  }
  if (needed > left) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a public prefix of ", request.prompt_length(), " tokens takes ", needed,
        " blocks; of public_blocks = ", state.config.public_blocks, ", ", left, " are left"));
  }
  PAGODA_CHECK(request.max_tokens() == 1);
  PAGODA_CHECK(request.num_choices() == 1);
  const base::RequestId id = request.id;
  request.one_request_namespace = true;
  Add(std::move(request));
  LiveRequest& live = state.requests[*state.requests.Find(id)];
  live.is_public_prefix = true;
  live.public_readers = std::move(readers);
  return absl::OkStatus();
}

void Scheduler::Cancel(base::RequestId id, FinishReason reason) {
  const auto index = state_->requests.Find(id);
  if (!index.has_value()) return;
  End(*state_, *index, reason);
}

void Scheduler::SetPaused(base::RequestId id, bool paused) {
  const auto index = state_->requests.Find(id);
  if (!index.has_value()) return;
  LiveRequest& live = state_->requests[*index];
  live.paused = paused;
  for (const Choice& choice : live.request->choices()) {
    if (choice.slot.has_value()) state_->SequenceIn(*choice.slot).is_paused = paused;
  }
}

const StepPlan* Scheduler::TryPlan(base::Instant now) { return MakePlan(*state_, now); }

std::optional<base::RequestId> Scheduler::RequestFor(const SampleResult& sample) const {
  return RequestForSample(*state_, sample);
}

std::optional<ScorePlace> Scheduler::PlaceOf(const ScoreResult& score) const {
  return PlaceOfScore(*state_, score);
}

const NewRequest& Scheduler::request(base::RequestId id) const {
  const auto index = state_->requests.Find(id);
  PAGODA_CHECK(index.has_value());
  return *state_->requests[*index].request;
}

StopProgress& Scheduler::stop_progress(base::RequestId id, std::uint32_t choice) {
  const auto index = state_->requests.Find(id);
  PAGODA_CHECK(index.has_value());
  return state_->requests[*index].request->choice(choice).stop;
}

void Scheduler::Complete(const StepResult& result, std::span<const SampleOutcome> outcomes) {
  CompleteJob(*state_, result, outcomes);
}

void Scheduler::Fail(base::JobId job) { FailJob(*state_, job); }

void Scheduler::Fence(base::JobId job) {
  if (job <= state_->jobs.fenced()) return;
  state_->jobs.Fence(job);
  state_->pool.Fence(job);
}

void Scheduler::TakeFinished(std::vector<FinishEvent>& out) {
  for (FinishEvent& event : state_->finished) out.push_back(std::move(event));
  state_->finished.clear();
}

std::int32_t Scheduler::FlushPrefixCache(std::optional<base::TenantId> only) {
  std::int32_t dropped = 0;
  for (std::uint32_t t = 0; t < state_->queues.size(); ++t) {
    const base::TenantId tenant(t);
    if (only.has_value() && tenant != *only) continue;
    dropped += state_->pool.DropEntriesOf(tenant);
    state_->cache.AdvanceEpoch(tenant);
  }
  return dropped;
}

std::uint64_t Scheduler::epoch(base::TenantId tenant) const { return state_->cache.epoch(tenant); }

base::Instant Scheduler::NextDeadline() const {
  base::Instant earliest = base::Instant::Never();
  if (const std::int64_t ttl = state_->config.cached_block_ttl_ms; ttl > 0) {
    earliest = state_->pool.OldestCached().PlusMillis(ttl);
  }
  if (state_->num_with_deadline == 0) return earliest;
  for (const LiveRequest& live : state_->requests.all()) {
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    earliest = std::min(earliest, live.request->deadline());
  }
  return earliest;
}

bool Scheduler::idle() const {
  return state_->requests.num_live() == 0 && state_->jobs.num_in_flight() == 0;
}

BlockStepTotals Scheduler::block_step_totals() const { return state_->block_steps; }

TenantStats Scheduler::tenant_stats(base::TenantId tenant) const {
  const SchedulerState& state = *state_;
  TenantStats stats = state.tenants[tenant.value()].counts;
  const TenantQueue& queue = state.queues[tenant.value()];
  stats.num_waiting = static_cast<std::int32_t>(queue.size());
  stats.queued_tokens = QueuedTokens(state, queue);
  stats.num_running = state.tenants[tenant.value()].num_running;
  stats.blocks_pinned = state.pool.num_pinned(tenant);
  stats.blocks_cached = state.pool.num_cached(tenant);
  return stats;
}

std::size_t Scheduler::Snapshot(std::span<std::uint8_t> out) const {
  return WriteSnapshot(*state_, out);
}

SchedulerStats Scheduler::stats() const {
  const SchedulerState& state = *state_;
  SchedulerStats stats = state.counters;
  for (const TenantQueue& queue : state.queues) {
    stats.num_waiting += static_cast<std::int32_t>(queue.size());
    stats.queued_tokens += QueuedTokens(state, queue);
  }
  stats.num_running = static_cast<std::int32_t>(state.requests.num_live()) - stats.num_waiting;
  stats.blocks_free = state.pool.num_in(BlockState::kFree);
  stats.blocks_owned = state.pool.num_in(BlockState::kOwned);
  stats.blocks_sealed = state.pool.num_in(BlockState::kSealed);
  stats.blocks_cached = state.pool.num_in(BlockState::kCached);
  stats.blocks_retiring = state.pool.num_in(BlockState::kRetiring);
  stats.blocks_public = state.pool.num_in(BlockState::kPublic);
  stats.blocks_total = state.pool.num_blocks();
  stats.num_steps = state.num_steps;
  stats.num_evictions = state.pool.num_evictions();
  return stats;
}

}  // namespace pagoda::scheduler
