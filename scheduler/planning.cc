// One plan, in passes. Each pass spends what the ones before left of the step's bounds:
//   1  running requests, oldest first; a prefill leaves a token for every decode, and half to other
//      prefills if there are any
//   2  admissions from the queue's head, never past it
//   3  running requests again, for what is left
#include "scheduler/planning.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "scheduler/admission.h"
#include "scheduler/forking.h"
#include "scheduler/growth.h"
#include "scheduler/lifecycle.h"

namespace pagoda::scheduler {
namespace {

StepBudget FullBudget(const SchedulerConfig& config) {
  return {.tokens = config.max_num_batched_tokens,
          .logit_rows = config.max_logit_rows_per_step,
          .attention_chunks = config.max_attention_chunks_per_step};
}

void ExpireDeadlines(SchedulerState& state, base::Instant now) {
  const std::span<const LiveRequest> all = state.requests.all();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const LiveRequest& live = all[i];
    if (live.phase == LiveRequest::Phase::kVacant || live.request->deadline() > now) continue;
    End(state, RequestIndex(i), FinishReason::kDeadline);
  }
}

bool IsDecoding(const Sequence& sequence) { return sequence.gap() == 1; }

// Requires: it runs.
bool IsPlannable(const SchedulerState& state, const Sequence& sequence) {
  return !state.RequestOf(sequence).paused && !sequence.waits_for_prompt &&
         !sequence.last_token_is_in_flight();
}

// Whether what the device must be told of the sequence first still fits into the plan. A fresh plan
// has room for any sequence.
bool HasRoomToTell(const SchedulerState& state, const Sequence& sequence) {
  const bool must_open = state.slots[sequence.slot.value()].must_open;
  return (!must_open || sequence.num_known <= state.history_room_tokens) &&
         state.tables.num_untold(sequence.slot) <= state.table_room_entries;
}

DraftItem& BeginItem(SchedulerState& state, const Sequence& sequence,
                     const PlannedStretch& stretch) {
  const LiveRequest& live = state.RequestOf(sequence);
  if (state.slots[sequence.slot.value()].must_open) state.history_room_tokens -= sequence.num_known;
  state.table_room_entries -= state.tables.num_untold(sequence.slot);
  return state.draft.AddItem({.place = sequence.request,
                              .request = live.request->id,
                              .incarnation = live.incarnation,
                              .choice = sequence.choice,
                              .slot = sequence.slot,
                              .slot_generation = state.slots[sequence.slot.value()].generation,
                              .stretch = stretch});
}

// Gives one sequence at most `most` of its next tokens. Rows that are only scored leave
// `rows_for_others`. Returns whether it got any.
bool Give(SchedulerState& state, base::SlotId slot, std::int32_t most, StepBudget& budget,
          std::int32_t rows_for_others = 0) {
  Sequence& sequence = state.SequenceIn(slot);
  if (!IsPlannable(state, sequence)) return false;
  DraftItem* item = state.draft.ItemOf(slot);
  if (item != nullptr && item->samples) return false;
  AdoptAhead(state, sequence);
  if (NextBlockIsBeingWritten(state, sequence)) return false;
  if (item == nullptr && !HasRoomToTell(state, sequence)) return false;

  const PlannedStretch before =
      item != nullptr ? item->stretch : PlannedStretch{sequence.num_planned, 0};
  const LiveRequest& live = state.RequestOf(sequence);
  const ScoredRows scored = live.scored_rows();
  StepBudget share = budget;
  if (live.needs_scores()) share.logit_rows -= rows_for_others;
  const std::int32_t count =
      FittingTokens(before, sequence.gap(), most, state.block_size(), share, scored);
  if (count <= 0 || !Grow(state, sequence, sequence.num_planned + count)) return false;

  item = state.draft.ItemOf(slot);  // growing may have dropped a victim's item and moved this one
  if (item == nullptr) {
    const bool is_new = sequence.num_planned >= state.ChoiceOf(sequence).high_water &&
                        sequence.num_planned >= sequence.prompt_length;
    item = &BeginItem(state, sequence, before);
    item->is_decode = is_new && count == 1;
  }
  budget.logit_rows -= scored.Within(item->end(), count);
  item->stretch.num_tokens += count;
  sequence.num_planned += count;
  item->samples = sequence.gap() == 0;
  budget.tokens -= count;
  budget.logit_rows -= item->samples;
  budget.attention_chunks -=
      AttentionChunks(item->stretch.first_position, item->stretch.num_tokens) -
      AttentionChunks(before.first_position, before.num_tokens);
  if (item->samples) ShareLastPromptRow(state, *item);
  return true;
}

// How much one prefill may take while others have prefill work too: half the step, whole blocks.
std::int32_t PrefillShare(const SchedulerState& state) {
  std::int32_t prefills = 0;
  for (const TenantQueue& queue : state.queues) prefills += queue.Head().has_value();
  for (const base::SlotId slot : state.running) {
    const Sequence& sequence = state.SequenceIn(slot);
    prefills += IsPlannable(state, sequence) && !IsDecoding(sequence);
  }
  const std::int32_t whole = state.config.max_num_batched_tokens;
  if (prefills < 2) return whole;
  return std::max(state.block_size(), whole / 2 / state.block_size() * state.block_size());
}

void ContinueRunning(SchedulerState& state, std::int32_t prefill_share, StepBudget& budget) {
  std::int32_t decodes_left = 0;
  for (const base::SlotId slot : state.running) {
    const Sequence& sequence = state.SequenceIn(slot);
    decodes_left += IsPlannable(state, sequence) && IsDecoding(sequence);
  }
  state.snapshot = state.running;
  for (const base::SlotId slot : state.snapshot) {
    if (!state.IsRunning(slot)) continue;  // a victim of one before it
    const Sequence& sequence = state.SequenceIn(slot);
    if (!IsPlannable(state, sequence)) continue;
    if (IsDecoding(sequence)) {
      --decodes_left;
      Give(state, slot, 1, budget);
    } else {
      Give(state, slot, std::min(prefill_share, budget.tokens - decodes_left), budget,
           decodes_left);
    }
  }
}

// Gives every sequence of a running request at most `most` of its next tokens.
void GiveAll(SchedulerState& state, RequestIndex index, std::int32_t most, StepBudget& budget) {
  for (const Choice& choice : state.requests[index].request->choices()) {
    if (choice.slot.has_value()) Give(state, *choice.slot, most, budget);
  }
}

void AdmitWaiting(SchedulerState& state, std::int32_t prefill_share, StepBudget& budget) {
  for (TenantQueue& queue : state.queues) {
    while (const auto head = queue.Head()) {
      // One that must be tried alone waits for a plan of its own (PlanAlone).
      if (state.requests[*head].num_failures >= 2) break;
      if (!TryAdmit(state, *head, budget)) break;
      GiveAll(state, *head, prefill_share, budget);
    }
  }
}

void SpendTheRest(SchedulerState& state, StepBudget& budget) {
  state.snapshot = state.running;
  for (const base::SlotId slot : state.snapshot) {
    if (budget.tokens <= 0) return;
    if (state.IsRunning(slot)) Give(state, slot, budget.tokens, budget);
  }
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

// A request whose step failed twice, and that could run now.
std::optional<RequestIndex> FindSuspect(SchedulerState& state) {
  for (const base::SlotId slot : state.running) {
    const Sequence& sequence = state.SequenceIn(slot);
    const bool failed_twice = state.RequestOf(sequence).num_failures >= 2;
    if (failed_twice && IsPlannable(state, sequence)) return sequence.request;
  }
  for (TenantQueue& queue : state.queues) {
    const auto head = queue.Head();
    if (!head.has_value() || state.requests[*head].num_failures < 2) continue;
    if (CanAdmit(state, *head, FullBudget(state.config))) return head;
  }
  return std::nullopt;
}

// A plan with nothing but the suspect in it.
void PlanAlone(SchedulerState& state, RequestIndex suspect, StepBudget& budget) {
  if (!state.requests[suspect].is_running()) {
    PAGODA_CHECK(TryAdmit(state, suspect, budget));
  }
  GiveAll(state, suspect, budget.tokens, budget);
}

// What was asked for takes effect once what is pinned and what was let in fits it.
void TryReconfigure(SchedulerState& state) {
  if (state.pending_tenants.empty()) return;
  SchedulerConfig config = state.config;
  config.tenants = state.pending_tenants;
  for (const LiveRequest& live : state.requests.all()) {
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    const std::int32_t capacity = Scheduler::CapacityBlocks(config, live.request->tenant);
    if (live.request->WorstCaseBlocks(state.block_size()) > capacity) return;
  }
  if (!state.pool.TrySetShares(SharesOf(config))) return;
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    state.tenants[i].config = config.tenants[i];
  }
  state.config = std::move(config);
  state.pending_tenants.clear();
}

void BeginDraft(SchedulerState& state) {
  state.draft.Begin(state.jobs.next_job());
  state.history_room_tokens = state.HistoryRoom();
  state.table_room_entries = state.HistoryRoom() / state.block_size() + 1;
}

// With nothing planned, in flight or retiring, and nobody paused, what runs can always go on, and
// with nothing running the queue's head can be admitted. Anything else would wait for ever.
void CheckProgressIsPossible(const SchedulerState& state) {
  if (!state.jobs.empty() || state.pool.num_in(BlockState::kRetiring) > 0) return;
  bool runs = false, is_paused = false;
  for (const base::SlotId slot : state.running) {
    const bool paused = state.RequestOf(state.SequenceIn(slot)).paused;
    runs |= !paused;
    is_paused |= paused;
  }
  PAGODA_CHECK_MSG(!runs, "a running request cannot go on, and nothing will change that");
  for (const TenantQueue& queue : state.queues) {
    PAGODA_CHECK_MSG(is_paused || !queue.Head().has_value(),
                     "a waiting request cannot start, and nothing will change that");
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
  StepBudget budget = FullBudget(state.config);
  const auto suspect = FindSuspect(state);
  if (suspect.has_value() && state.jobs.num_in_flight() > 0) return nullptr;
  PlanForkCopies(state);
  if (suspect.has_value()) {
    PlanAlone(state, *suspect, budget);
    if (const StepPlan* plan = CommitDraft(state)) return plan;
  }
  const std::int32_t prefill_share = PrefillShare(state);
  ContinueRunning(state, prefill_share, budget);
  // From here on each running sequence has its blocks or is stalled.
  AdmitWaiting(state, prefill_share, budget);
  SpendTheRest(state, budget);
  ScrubFlushed(state);
  const StepPlan* plan = CommitDraft(state);
  if (plan == nullptr) CheckProgressIsPossible(state);
  return plan;
}

}  // namespace pagoda::scheduler
