// One plan, in passes. Each pass spends what the ones before left of the step's bounds:
//   1  running requests, oldest first; a prefill leaves a token for every decode, and half to other
//   prefills if there are any 2  admissions from the queue's head, never past it 3  running
//   requests again, for what is left
#include "scheduler/planning.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "scheduler/admission.h"
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
  const std::span<const Sequence> all = state.sequences.all();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const Sequence& sequence = all[i];
    if (sequence.phase == Sequence::Phase::kVacant || sequence.request->deadline() > now) continue;
    End(state, SequenceIndex(i), FinishReason::kDeadline);
  }
}

bool IsDecoding(const Sequence& sequence) { return sequence.gap() == 1; }

// Gives one sequence at most `most` of its next tokens. Returns whether it got any.
bool Give(SchedulerState& state, SequenceIndex index, std::int32_t most, StepBudget& budget) {
  Sequence& sequence = state.sequences[index];
  if (!sequence.is_plannable()) return false;
  DraftItem* item = state.draft.ItemOf(sequence.slot);
  if (item != nullptr && item->samples) return false;
  AdoptAhead(state, index);
  if (NextBlockIsBeingWritten(state, sequence)) return false;

  const PlannedStretch before =
      item != nullptr ? item->stretch : PlannedStretch{sequence.num_planned, 0};
  const std::int32_t count =
      FittingTokens(before, sequence.gap(), most, state.block_size(), budget);
  if (count <= 0 || !Grow(state, index, sequence.num_planned + count)) return false;

  item = state.draft.ItemOf(
      sequence.slot);  // growing may have dropped a victim's item and moved this one
  if (item == nullptr) {
    const bool is_new = sequence.num_planned >= sequence.high_water &&
                        sequence.num_planned >= sequence.request->prompt_length();
    item = &state.draft.AddItem({.sequence = index,
                                 .request = sequence.request->id,
                                 .incarnation = sequence.incarnation,
                                 .slot = sequence.slot,
                                 .slot_generation = state.slots[sequence.slot.value()].generation,
                                 .stretch = before,
                                 .is_decode = is_new && count == 1});
  }
  item->stretch.num_tokens += count;
  sequence.num_planned += count;
  item->samples = sequence.gap() == 0;
  budget.tokens -= count;
  budget.logit_rows -= item->samples;
  budget.attention_chunks -=
      AttentionChunks(item->stretch.first_position, item->stretch.num_tokens) -
      AttentionChunks(before.first_position, before.num_tokens);
  return true;
}

// How much one prefill may take while others have prefill work too: half the step, whole blocks.
std::int32_t PrefillShare(const SchedulerState& state) {
  std::int32_t prefills = 0;
  for (const TenantQueue& queue : state.queues) prefills += queue.Head().has_value();
  for (const SequenceIndex index : state.running) {
    const Sequence& sequence = state.sequences[index];
    prefills += sequence.is_plannable() && !IsDecoding(sequence);
  }
  const std::int32_t whole = state.config.max_num_batched_tokens;
  if (prefills < 2) return whole;
  return std::max(state.block_size(), whole / 2 / state.block_size() * state.block_size());
}

void ContinueRunning(SchedulerState& state, std::int32_t prefill_share, StepBudget& budget) {
  std::int32_t decodes_left = 0;
  for (const SequenceIndex index : state.running) {
    const Sequence& sequence = state.sequences[index];
    decodes_left += sequence.is_plannable() && IsDecoding(sequence);
  }
  state.snapshot = state.running;
  for (const SequenceIndex index : state.snapshot) {
    const Sequence& sequence = state.sequences[index];
    if (!sequence.is_plannable()) continue;
    if (IsDecoding(sequence)) {
      --decodes_left;
      Give(state, index, 1, budget);
    } else {
      Give(state, index, std::min(prefill_share, budget.tokens - decodes_left), budget);
    }
  }
}

void AdmitWaiting(SchedulerState& state, std::int32_t prefill_share, StepBudget& budget) {
  for (TenantQueue& queue : state.queues) {
    while (const auto head = queue.Head()) {
      // One that must be tried alone waits for a plan of its own (PlanAlone).
      if (state.sequences[*head].num_failures >= 2) break;
      if (!TryAdmit(state, *head, budget)) break;
      Give(state, *head, prefill_share, budget);
    }
  }
}

void SpendTheRest(SchedulerState& state, StepBudget& budget) {
  state.snapshot = state.running;
  for (const SequenceIndex index : state.snapshot) {
    if (budget.tokens <= 0) return;
    Give(state, index, budget.tokens, budget);
  }
}

// A request whose step failed twice, and that could run now.
std::optional<SequenceIndex> FindSuspect(SchedulerState& state) {
  for (const SequenceIndex index : state.running) {
    const Sequence& sequence = state.sequences[index];
    if (sequence.num_failures >= 2 && sequence.is_plannable()) return index;
  }
  for (TenantQueue& queue : state.queues) {
    const auto head = queue.Head();
    if (!head.has_value() || state.sequences[*head].num_failures < 2) continue;
    if (CanAdmit(state, *head, FullBudget(state.config))) return head;
  }
  return std::nullopt;
}

// A plan with nothing but the suspect in it.
void PlanAlone(SchedulerState& state, SequenceIndex suspect, StepBudget& budget) {
  if (!state.sequences[suspect].is_running()) {
    PAGODA_CHECK(TryAdmit(state, suspect, budget));
  }
  Give(state, suspect, budget.tokens, budget);
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
  for (const SequenceIndex index : state.running) {
    runs |= !state.sequences[index].paused;
    is_paused |= state.sequences[index].paused;
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
  BeginDraft(state);
  StepBudget budget = FullBudget(state.config);
  if (const auto suspect = FindSuspect(state); suspect.has_value()) {
    if (state.jobs.num_in_flight() > 0) return nullptr;
    PlanAlone(state, *suspect, budget);
    if (const StepPlan* plan = CommitDraft(state)) return plan;
  }
  const std::int32_t prefill_share = PrefillShare(state);
  ContinueRunning(state, prefill_share, budget);
  // From here on each running sequence has its blocks or is stalled.
  AdmitWaiting(state, prefill_share, budget);
  SpendTheRest(state, budget);
  const StepPlan* plan = CommitDraft(state);
  if (plan == nullptr) CheckProgressIsPossible(state);
  return plan;
}

}  // namespace pagoda::scheduler
