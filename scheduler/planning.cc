// One plan, in passes. A pass spends its tenants' floors, or what they left of the whole step:
//   0  running requests of all tenants, oldest first, within their floors; a prefill leaves a token
//      for every decode, and half to other prefills if there are any
//   1  admissions within the floors, the oldest head first, never past a head
//   -  running requests again, for what is left of their floors
//   2  elastic tenants, the lowest counter first: running requests, then admissions, from what is
//      left of the step
#include "scheduler/planning.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "scheduler/admission.h"
#include "scheduler/fair_counters.h"
#include "scheduler/forking.h"
#include "scheduler/giving.h"
#include "scheduler/lifecycle.h"
#include "scheduler/mutants.h"
#include "scheduler/progress.h"
#include "scheduler/reconfiguration.h"

namespace pagoda::scheduler {
namespace {

void ExpireDeadlines(SchedulerState& state, base::Instant now) {
  if (state.num_with_deadline == 0) return;
  const std::span<const LiveRequest> all = state.requests.all();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const LiveRequest& live = all[i];
    if (live.phase == LiveRequest::Phase::kVacant || live.request->deadline() > now) continue;
    End(state, RequestIndex(i), FinishReason::kDeadline);
  }
}

// Counts for each tenant the running sequences that need a token and no more, and how much one
// prefill may take while others of the same tenant have prefill work too: half its floor, whole
// blocks.
void ShareFloors(SchedulerState& state) {
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    state.tenants[t].decodes_left = 0;
    state.tenants[t].prefill_share = state.queues[t].Head().has_value();
  }
  for (const base::SlotId slot : state.running) {
    const Sequence& sequence = state.SequenceIn(slot);
    if (!IsPlannable(sequence)) continue;
    Tenant& tenant = state.TenantOf(sequence);
    ++(IsDecoding(sequence) ? tenant.decodes_left : tenant.prefill_share);
  }
  const std::int32_t block = state.block_size();
  for (Tenant& tenant : state.tenants) {
    const std::int32_t whole = tenant.floors.step.tokens;
    tenant.prefill_share =
        tenant.prefill_share < 2 ? whole : std::max(block, whole / 2 / block * block);
  }
}

void ContinueWithinFloors(SchedulerState& state) {
  constexpr std::size_t kAhead = 12;
  state.snapshot = state.running;
  for (std::size_t i = 0; i < state.snapshot.size(); ++i) {
    if (i + kAhead < state.snapshot.size()) state.FetchSequence(state.snapshot[i + kAhead]);
    const base::SlotId slot = state.snapshot[i];
    if (!state.IsRunning(slot)) continue;  // a victim of one before it
    const Sequence& sequence = state.SequenceIn(slot);
    if (!IsPlannable(sequence)) continue;
    Tenant& tenant = state.TenantOf(sequence);
    if (IsDecoding(sequence)) {
      --tenant.decodes_left;
      Give(state, slot, 1, Purse::kFloor);
      continue;
    }
    const std::int32_t for_others =
        std::clamp(tenant.items_left - 1, 0, std::max(0, tenant.decodes_left));
    const std::int32_t most = tenant.floor_left.tokens - for_others;
    Give(state, slot, std::min(tenant.prefill_share, most), Purse::kFloor, for_others);
  }
}

// It can get no more in this plan.
bool IsServed(SchedulerState& state, base::SlotId slot) {
  const DraftItem* item = state.draft.ItemOf(slot);
  return item != nullptr && item->samples;
}

// In a full batch almost all are served, so the passes to come walk the others only.
void ListUnserved(SchedulerState& state) {
  state.unserved.clear();
  for (const base::SlotId slot : state.running) {
    if (!IsServed(state, slot)) state.unserved.push_back(slot);
  }
}

void SpendFloors(SchedulerState& state) {
  for (const base::SlotId slot : state.unserved) {
    if (!state.IsRunning(slot) || IsServed(state, slot)) continue;
    const Tenant& tenant = state.TenantOf(state.SequenceIn(slot));
    Give(state, slot, tenant.floor_left.tokens, Purse::kFloor);
  }
}

// The head of a tenant's queue that this pass may still try. One that must be tried alone waits for
// a plan of its own (PlanAlone).
std::optional<RequestIndex> HeadToTry(const SchedulerState& state, base::TenantId id, Purse purse) {
  const Tenant& tenant = state.tenants[id.value()];
  if (tenant.is_refused || (purse == Purse::kRest && !tenant.is_elastic())) return std::nullopt;
  const auto head = state.queues[id.value()].Head();
  if (!head.has_value() || state.requests[*head].num_failures >= 2) return std::nullopt;
  return head;
}

// The tenant whose turn it is: the one with the oldest head within the floors, the lowest counter
// for the rest.
std::optional<base::TenantId> NextToAdmit(const SchedulerState& state, Purse purse) {
  std::optional<base::TenantId> next;
  std::int64_t lowest = 0;
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    const auto head = HeadToTry(state, base::TenantId(t), purse);
    if (!head.has_value()) continue;
    const std::int64_t rank =
        purse == Purse::kFloor
            ? static_cast<std::int64_t>(state.requests[*head].request->id.value())
            : state.tenants[t].counter;
    if (next.has_value() && rank >= lowest) continue;
    next = base::TenantId(t);
    lowest = rank;
  }
  return next;
}

void AdmitWaiting(SchedulerState& state, Purse purse) {
  for (Tenant& tenant : state.tenants) tenant.is_refused = false;
  while (const auto id = NextToAdmit(state, purse)) {
    RaiseBarrier(state);
    Tenant& tenant = state.tenants[id->value()];
    const RequestIndex head = *state.queues[id->value()].Head();
    if (TryAdmit(state, head, purse) != Admission::kGiven) {
      tenant.is_refused = true;
      continue;
    }
    GiveAll(state, head, purse == Purse::kFloor ? tenant.prefill_share : state.left.tokens, purse);
  }
}

bool SharesTheRest(const Tenant& tenant) {
  return tenant.is_elastic() || PAGODA_MUTANT(kIsolatedGetsTheRest);
}

// Running requests of one elastic tenant, from what is left. A prefill leaves a token for every
// decode of anyone.
void ContinueWithTheRest(SchedulerState& state, base::TenantId id, std::int32_t& decodes_left) {
  for (const base::SlotId slot : state.unserved) {
    if (state.left.tokens <= 0) return;
    if (!state.IsRunning(slot) || IsServed(state, slot)) continue;
    const Sequence& sequence = state.SequenceIn(slot);
    if (sequence.tenant != id) continue;
    if (IsDecoding(sequence)) {
      const bool gets_one = Give(state, slot, 1, Purse::kRest);
      decodes_left -= gets_one;
    } else {
      // Below zero: more came to need one token only than did at the start of the pass.
      const std::int32_t for_others = std::max(0, decodes_left);
      Give(state, slot, state.left.tokens - for_others, Purse::kRest, for_others);
    }
  }
}

// Running sequences that need a token and no more, and have none yet, of those who may get some of
// what is left.
std::int32_t CountDecodesOfTheRest(const SchedulerState& state) {
  std::int32_t count = 0;
  for (const base::SlotId slot : state.unserved) {
    const Sequence& sequence = state.SequenceIn(slot);
    if (!state.IsRunning(slot) || !SharesTheRest(state.TenantOf(sequence))) continue;
    count += IsPlannable(sequence) && IsDecoding(sequence) && !state.draft.HasItem(slot);
  }
  return count;
}

void ShareTheRest(SchedulerState& state) {
  std::int32_t decodes_left = CountDecodesOfTheRest(state);
  state.turns.clear();
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    if (SharesTheRest(state.tenants[t])) state.turns.emplace_back(t);
  }
  std::ranges::sort(state.turns, {}, [&](base::TenantId id) {
    const std::int64_t counter = state.tenants[id.value()].counter;
    return std::pair(PAGODA_MUTANT(kHighestCounterFirst) ? -counter : counter, id);
  });
  for (const base::TenantId id : state.turns) ContinueWithTheRest(state, id, decodes_left);
  AdmitWaiting(state, Purse::kRest);
}

// What nobody has asked for that long goes, so much of each tenant in each plan: the rest at the
// next ones.
void ExpireCached(SchedulerState& state, base::Instant now) {
  constexpr std::int32_t kMostInOnePlan = 256;
  if (state.config.cached_block_ttl_ms == 0) return;
  const base::Instant until = now.PlusMillis(-state.config.cached_block_ttl_ms);
  state.pool.ExpireCached(until, kMostInOnePlan);
}

// What a flush has freed, or its age, is zeroed without waiting for its next hand-out, so much in
// each plan.
void ScrubFlushed(SchedulerState& state) {
  constexpr int kMostInOnePlan = 256;
  for (int i = 0; i < kMostInOnePlan; ++i) {
    const auto block = state.pool.TakeToScrub();
    if (!block.has_value()) return;
    state.draft.AddZero(base::SlotId{}, *block);
  }
}

// Within its floors if they have room for it.
Purse PurseForAlone(const SchedulerState& state, const LiveRequest& live) {
  const Tenant& tenant = state.TenantOf(live);
  const bool fits = live.is_running() || tenant.num_slots + live.num_open <= tenant.floors.slots;
  return fits || !tenant.is_elastic() ? Purse::kFloor : Purse::kRest;
}

// A request whose step failed twice, and that could run now.
std::optional<RequestIndex> FindSuspect(SchedulerState& state) {
  for (const base::SlotId slot : state.running) {
    const Sequence& sequence = state.SequenceIn(slot);
    if (!sequence.began_after_failure || !IsPlannable(sequence)) continue;
    if (state.RequestOf(sequence).num_failures >= 2) return sequence.request;
  }
  for (const TenantQueue& queue : state.queues) {
    const auto head = queue.Head();
    if (!head.has_value()) continue;
    const LiveRequest& live = state.requests[*head];
    if (live.num_failures < 2) continue;
    if (Judge(state, *head, PurseForAlone(state, live)) == Admission::kGiven) return head;
  }
  return std::nullopt;
}

// A plan with nothing but the suspect in it.
void PlanAlone(SchedulerState& state, RequestIndex suspect) {
  const Purse purse = PurseForAlone(state, state.requests[suspect]);
  if (!state.requests[suspect].is_running()) {
    PAGODA_CHECK(TryAdmit(state, suspect, purse) == Admission::kGiven);
  }
  GiveAll(state, suspect, state.left.tokens, purse);
}

void BeginDraft(SchedulerState& state) {
  state.draft.Begin(state.jobs.next_job());
  state.left = {.tokens = state.config.max_num_batched_tokens,
                .logit_rows = state.config.max_logit_rows_per_step,
                .attention_chunks = state.config.max_attention_chunks_per_step};
  state.barrier = kNoBarrier;
  for (Tenant& tenant : state.tenants) {
    tenant.floor_left = tenant.floors.step;
    tenant.items_left = tenant.floors.slots;
    tenant.history_room_tokens = state.HistoryRoom();
    tenant.table_room_entries = state.HistoryRoom() / state.block_size() + 1;
    tenant.num_handed_out = 0;
    tenant.charge_of_decode = ChargeOf(tenant, kChargeOfDecodeToken);
    tenant.judged_head.reset();
  }
}

}  // namespace

const StepPlan* MakePlan(SchedulerState& state, base::Instant now) {
  ExpireDeadlines(state, now);
  if (state.jobs.full() || state.jobs.num_in_flight() >= state.config.max_in_flight) return nullptr;
  state.planning_at = now;
  state.pool.BeginPlan(now);
  ExpireCached(state, now);
  TryReconfigure(state);
  BeginDraft(state);
  const auto suspect = FindSuspect(state);
  if (suspect.has_value() && state.jobs.num_in_flight() > 0) return nullptr;
  NoteOldest(state);
  PlanForkCopies(state);
  if (suspect.has_value()) {
    PlanAlone(state, *suspect);
    if (const StepPlan* plan = CommitDraft(state)) return plan;
  }
  LiftCounters(state);
  ShareFloors(state);
  ContinueWithinFloors(state);
  // From here on each running sequence has its blocks or is stalled, as far as its tenant's floors
  // reach.
  AdmitWaiting(state, Purse::kFloor);
  ListUnserved(state);
  SpendFloors(state);
  ShareTheRest(state);
  CheckOldestMoved(state);
  ScrubFlushed(state);
  const StepPlan* plan = CommitDraft(state);
  if (plan == nullptr) CheckProgressIsPossible(state);
  return plan;
}

}  // namespace pagoda::scheduler
