#include "scheduler/snapshot.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace pagoda::scheduler {
namespace {

constexpr std::uint64_t kMagic = 0x33'70'61'6e'73'67'61'70;  // "pagsnap3"
constexpr std::size_t kMostTenants = 4096;

void VisitTenantConfig(SnapshotArchive& a, TenantConfig& tenant) {
  a.Text(tenant.name);
  a(tenant.weight, tenant.reserve_blocks, tenant.max_queued_requests, tenant.max_queued_tokens,
    tenant.max_running, tenant.isolated);
}

void VisitBudget(SnapshotArchive& a, StepBudget& budget) {
  a(budget.tokens, budget.logit_rows, budget.attention_chunks);
}

void VisitReceipt(SnapshotArchive& a, Receipt& receipt) {
  a(receipt.prompt_tokens, receipt.cached_tokens, receipt.generated_tokens,
    receipt.discarded_tokens, receipt.preemptions, receipt.queue_steps, receipt.prefill_steps,
    receipt.decode_steps, receipt.blocks_touched, receipt.blocks_reused, receipt.blocks_peak,
    receipt.block_steps);
}

void VisitStop(SnapshotArchive& a, StopProgress& stop) {
  a(stop.state, stop.held_bytes, stop.text_bytes, stop.grammar_state, stop.text_end,
    stop.matched_stop, stop.matched_stop_token);
}

void VisitTenant(SnapshotArchive& a, Tenant& tenant) {
  TenantStats& counts = tenant.counts;
  a(tenant.counter, counts.num_admitted, counts.num_preemptions, counts.shared_block_steps,
    counts.num_slot_victims, counts.num_eligible_steps, counts.num_lifts, counts.prompt_tokens,
    counts.generated_tokens);
  a(tenant.num_slots, tenant.num_running, tenant.num_new);
  VisitBudget(a, tenant.floor_left);
  a(tenant.items_left, tenant.decodes_left, tenant.prefill_share, tenant.history_room_tokens,
    tenant.table_room_entries, tenant.num_handed_out, tenant.judged_head, tenant.head_need_blocks,
    tenant.is_eligible, tenant.is_refused, tenant.oldest, tenant.oldest_runnable,
    tenant.oldest_incarnation, tenant.waits_for_own_older, tenant.waits_for_any_older);
}

void VisitSequence(SnapshotArchive& a, Sequence& sequence) {
  a(sequence.request, sequence.choice, sequence.slot, sequence.prompt_length, sequence.max_length,
    sequence.num_known, sequence.num_computed, sequence.num_planned, sequence.num_expected,
    sequence.num_sealed, sequence.waits_for_prompt, sequence.last_job, sequence.last_handed_job,
    sequence.waited_in);
  a(sequence.tenant, sequence.num_keyed, sequence.high_water, sequence.newest_token,
    sequence.is_paused, sequence.has_siblings, sequence.asks_for_scores,
    sequence.began_after_failure, sequence.request_id, sequence.incarnation, sequence.owner,
    sequence.prefill_steps, sequence.decode_steps);
}

void VisitTotals(SnapshotArchive& a, SchedulerState& state) {
  SchedulerStats& counters = state.counters;
  a(counters.num_preemptions, counters.num_evictions, counters.num_adoptions,
    counters.prompt_tokens, counters.cached_tokens, counters.generated_tokens);
  BlockStepTotals& totals = state.block_steps;
  a(totals.requests, totals.shared, totals.retiring, totals.cached, totals.free, totals.public_lane,
    totals.null_block, totals.steps);
}

}  // namespace

void SnapshotAccess::Visit(SnapshotArchive& a, SchedulerConfig& config) {
  a.List(config.pool_blocks_per_group, 16);
  a(config.block_size, config.max_num_seqs, config.max_num_batched_tokens, config.max_model_len,
    config.max_logit_rows_per_step, config.max_attention_chunks_per_step,
    config.max_queued_requests, config.max_queued_tokens, config.max_in_flight,
    config.max_namespaces, config.public_blocks, config.cached_block_ttl_ms,
    config.vocabulary_size);
  KeyDomain& domain = config.key_domain;
  a.Bytes(domain.model_digest);
  a(domain.kv_group, domain.kv_type, domain.layout_version, domain.block_size, domain.epoch);
  a.Text(domain.position_scheme);
  a.Text(domain.numerics_id);
  a.List(config.tenants, kMostTenants, VisitTenantConfig);
}

void SnapshotAccess::Visit(SnapshotArchive& a, NewRequest& request, std::int32_t block_size) {
  a(request.id, request.tenant, request.one_request_namespace, request.skips_reading_cache_,
    request.arrival, request.max_tokens_, request.prompt_length_, request.priority_,
    request.deadline_, request.epoch_, request.has_keys_, request.sampling_.logprobs,
    request.sampling_.prompt_logprobs);
  bool has_namespace = request.cache_namespace.has_value();
  a(has_namespace);
  if (has_namespace) {
    NamespaceKey key = request.cache_namespace.value_or(NamespaceKey({}));
    a.Bytes(key.bytes_);
    request.cache_namespace = key;
  }
  const std::int64_t length = std::int64_t{request.prompt_length_} + request.max_tokens_;
  if (request.prompt_length_ < 1 || request.max_tokens_ < 0) a.Fail();
  if (!a.ok()) return;
  const auto most_tokens = static_cast<std::size_t>(length);
  const std::size_t most_keys = most_tokens / static_cast<std::size_t>(block_size);
  a.List(request.choices_, ModelLimits::kMaxChoices, [&](SnapshotArchive& archive, Choice& choice) {
    archive.Growing(choice.tokens, most_tokens);
    archive.Growing(choice.keys, most_keys,
                    [](SnapshotArchive& each, BlockKey& key) { each.Bytes(key.bytes); });
    VisitStop(archive, choice.stop);
    archive(choice.finish, choice.high_water, choice.slot);
  });
}

void SnapshotAccess::Visit(SnapshotArchive& a, SchedulerState& state, LiveRequest& live) {
  a(live.phase);
  if (live.phase == LiveRequest::Phase::kVacant) return;
  if (a.is_reading()) live.request.emplace(NewRequest());
  Visit(a, *live.request, state.block_size());
  constexpr std::uint32_t kNone = 0xffffffffu;
  std::uint32_t place = live.cache_namespace == nullptr ? kNone : live.cache_namespace->place();
  a(live.paused, live.incarnation, place, live.is_public_prefix, live.key_epoch, live.num_open,
    live.times_overtaken, live.num_failures, live.was_admitted, live.admitted_at, live.num_scored,
    live.added_at_step, live.counted_prefill, live.counted_decode);
  a.List(live.public_readers, kMostTenants);
  VisitReceipt(a, live.receipt);
  if (!a.is_reading() || !a.ok()) return;
  if (live.request->tenant.value() >= state.tenants.size()) return a.Fail();
  if (place == kNone) return;
  auto& namespaces = state.cache.namespaces_;
  if (place >= namespaces.size() || !namespaces[place].has_value()) return a.Fail();
  live.cache_namespace = &*namespaces[place];
}

void SnapshotAccess::Visit(SnapshotArchive& a, RequestSlab& requests, SchedulerState& state) {
  std::uint32_t index = 0;
  a.Fixed(requests.requests_, [&](SnapshotArchive& archive, LiveRequest& live) {
    Visit(archive, state, live);
    const bool is_taken = live.phase != LiveRequest::Phase::kVacant;
    if (archive.is_reading() && archive.ok() && is_taken) {
      requests.by_id_.PushFront(live.request->id.value(), index);
    }
    ++index;
  });
  a.Growing(requests.free_, requests.requests_.size());
}

void SnapshotAccess::Visit(SnapshotArchive& a, TenantQueue& queue) {
  a.Growing(queue.order_, queue.order_.capacity(),
            [](SnapshotArchive& archive, TenantQueue::Waiting& waiting) {
              archive(waiting.index, waiting.arrival);
            });
}

// Where the choices of what runs are is not written: it is found again.
void SnapshotAccess::FindRecords(SnapshotArchive& a, SchedulerState& state) {
  for (const base::SlotId slot : state.running) {
    if (slot.value() >= state.sequences.size()) return a.Fail();
    Sequence& sequence = state.SequenceIn(slot);
    if (sequence.request.value() >= state.requests.capacity()) return a.Fail();
    std::optional<NewRequest>& request = state.requests[sequence.request].request;
    if (!request.has_value() || sequence.choice >= request->num_choices()) return a.Fail();
    sequence.record = &request->choice(sequence.choice);
  }
}

// The order of the parts is that of their needs: the requests refer to the cache's namespaces.
void SnapshotAccess::Visit(SnapshotArchive& a, SchedulerState& state) {
  Visit(a, state.cache);
  Visit(a, state.pool);
  Visit(a, state.public_lane);
  Visit(a, state.tables);
  a.Fixed(state.block_owners);
  Visit(a, state.requests, state);
  a.Fixed(state.sequences, VisitSequence);
  a.Fixed(state.block_steps_of_slot);
  for (TenantQueue& queue : state.queues) Visit(a, queue);
  a.Fixed(state.tenants, VisitTenant);
  a.List(state.pending_tenants, kMostTenants, VisitTenantConfig);
  a.List(state.pending_shares, kMostTenants, [](SnapshotArchive& archive, TenantShare& share) {
    archive(share.reserve_blocks, share.isolated);
  });
  a.Growing(state.running, state.slots.size());
  a.Fixed(state.slots, [](SnapshotArchive& archive, Slot& slot) {
    archive(slot.request, slot.generation, slot.is_open_on_device, slot.must_open);
  });
  if (a.is_reading() && a.ok()) FindRecords(a, state);
  Visit(a, state.jobs);
  a.Growing(state.fork_copies, state.slots.size(),
            [](SnapshotArchive& archive, DraftEffect& effect) {
              archive(effect.block, effect.source, effect.num_slots, effect.slot);
            });
  // Of a plan only what a failure of its job takes back.
  a.Fixed(state.plans, [&state](SnapshotArchive& archive, StepPlan& plan) {
    archive(plan.job);
    archive.Growing(plan.closed, state.slots.size());
  });
  VisitBudget(a, state.left);
  a(state.planning_at, state.barrier, state.derives_attention_chunks, state.incarnations,
    state.num_with_deadline, state.num_steps);
  VisitTotals(a, state);
}

std::size_t WriteSnapshot(SchedulerState& state, std::span<std::uint8_t> out) {
  PAGODA_CHECK_MSG(state.finished.empty(), "finished requests are taken before a snapshot");
  SnapshotArchive archive(out);
  std::uint64_t magic = kMagic;
  std::uint64_t size_of_state = sizeof(SchedulerState);
  archive(magic, size_of_state);
  SnapshotAccess::Visit(archive, state.config);
  SnapshotAccess::Visit(archive, state);
  return archive.ok() ? archive.position() : 0;
}

absl::StatusOr<std::unique_ptr<SchedulerState>> ReadSnapshot(std::span<const std::uint8_t> bytes) {
  SnapshotArchive archive(bytes);
  std::uint64_t magic = 0;
  std::uint64_t size_of_state = 0;
  archive(magic, size_of_state);
  if (!archive.ok() || magic != kMagic) return absl::DataLossError("no snapshot of a scheduler");
  if (size_of_state != sizeof(SchedulerState)) {
    return absl::DataLossError("the snapshot is another build's");
  }
  SchedulerConfig config;
  SnapshotAccess::Visit(archive, config);
  if (!archive.ok()) return absl::DataLossError("the snapshot's configuration cannot be read");
  PAGODA_RETURN_IF_ERROR(CheckConfig(config));
  auto state = std::make_unique<SchedulerState>(config);
  SnapshotAccess::Visit(archive, *state);
  if (!archive.ok() || archive.position() != bytes.size()) {
    return absl::DataLossError("the snapshot's state cannot be read");
  }
  state->draft.Begin(state->jobs.next_job());
  return state;
}

}  // namespace pagoda::scheduler
