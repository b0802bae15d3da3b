#include "scheduler/giving.h"

#include <algorithm>

#include "base/check.h"
#include "scheduler/fair_counters.h"
#include "scheduler/forking.h"
#include "scheduler/growth.h"
#include "scheduler/lifecycle.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {
namespace {

// Whether what the device must be told of the sequence first still fits into the plan. A fresh plan
// has room for any sequence.
bool HasRoomToTell(const SchedulerState& state, const Sequence& sequence) {
  const bool must_open = state.slots[sequence.slot.value()].must_open;
  const Tenant& tenant = state.TenantOf(sequence);
  return (!must_open || sequence.num_known <= tenant.history_room_tokens) &&
         state.tables.num_untold(sequence.slot) <= tenant.table_room_entries;
}

DraftItem& BeginItem(SchedulerState& state, const Sequence& sequence,
                     const PlannedStretch& stretch) {
  Tenant& tenant = state.TenantOf(sequence);
  if (state.slots[sequence.slot.value()].must_open) {
    tenant.history_room_tokens -= sequence.num_known;
  }
  tenant.table_room_entries -= state.tables.num_untold(sequence.slot);
  return state.draft.AddItem({.request = sequence.request_id,
                              .place = sequence.request,
                              .choice = sequence.choice,
                              .slot = sequence.slot,
                              .slot_generation = state.slots[sequence.slot.value()].generation,
                              .stretch = stretch});
}

void Spend(SchedulerState& state, Tenant& tenant, Purse purse, const StepBudget& cost) {
  state.left.Spend(cost);
  if (purse == Purse::kFloor) tenant.floor_left.Spend(cost);
  PAGODA_CHECK(state.left.tokens >= 0);
  PAGODA_CHECK(state.left.logit_rows >= 0);
  PAGODA_CHECK(state.left.attention_chunks >= 0);
}

// The item that the sequence has, or begins here.
DraftItem& ItemFor(SchedulerState& state, const Sequence& sequence, const PlannedStretch& before,
                   std::int32_t count, Purse purse) {
  if (DraftItem* item = state.draft.ItemOf(sequence.slot)) return *item;
  const bool is_new =
      sequence.num_planned >= sequence.high_water && sequence.num_planned >= sequence.prompt_length;
  DraftItem& item = BeginItem(state, sequence, before);
  item.is_decode = is_new && count == 1;
  Tenant& tenant = state.TenantOf(sequence);
  if (item.is_decode && !PAGODA_MUTANT(kDecodesUncharged))
    tenant.counter += tenant.charge_of_decode;
  tenant.items_left -= purse == Purse::kFloor;
  return item;
}

// Needs one token, with nothing that could be found, awaited, scored or shared on the way: what
// Give does comes to a few comparisons. In blocks of one token there may be.
bool IsPlainDecode(const SchedulerState& state, const Sequence& sequence) {
  return IsDecoding(sequence) && !sequence.asks_for_scores && !sequence.has_siblings &&
         state.block_size() > 1;
}

// What Give does for a plain decode without an item.
bool GiveOneToken(SchedulerState& state, Sequence& sequence, const StepBudget& share, Purse purse) {
  const PlannedStretch before{sequence.num_planned, 0};
  const StepBudget cost{.tokens = 1,
                        .logit_rows = !PAGODA_MUTANT(kRowsNotCounted),
                        .attention_chunks = AttentionChunks(sequence.num_planned, 1)};
  if (share.logit_rows < 1 || share.attention_chunks < cost.attention_chunks) return false;
  if (!Grow(state, sequence, sequence.num_planned + 1)) return false;
  DraftItem& item = ItemFor(state, sequence, before, 1, purse);
  item.stretch.num_tokens = 1;
  item.samples = true;
  ++sequence.num_planned;
  Spend(state, state.TenantOf(sequence), purse, cost);
  return true;
}

}  // namespace

bool Give(SchedulerState& state, base::SlotId slot, std::int32_t most, Purse purse,
          std::int32_t rows_for_others) {
  const DraftItem* begun = state.draft.ItemOf(slot);
  if (begun != nullptr && begun->samples) return false;
  Sequence& sequence = state.SequenceIn(slot);
  if (!IsPlannable(sequence)) return false;
  Tenant& tenant = state.TenantOf(sequence);
  StepBudget share = purse == Purse::kFloor ? tenant.floor_left : state.left;
  if (share.tokens <= 0) return false;
  if (purse == Purse::kFloor && begun == nullptr && tenant.items_left == 0) return false;
  if (begun == nullptr && IsPlainDecode(state, sequence)) {
    return most > 0 && HasRoomToTell(state, sequence) &&
           GiveOneToken(state, sequence, share, purse);
  }
  AdoptAhead(state, sequence);
  if (NextBlockIsBeingWritten(state, sequence)) {
    sequence.waited_in = state.draft.job();
    return false;
  }
  if (begun == nullptr && !HasRoomToTell(state, sequence)) return false;

  const PlannedStretch before =
      begun != nullptr ? begun->stretch : PlannedStretch{sequence.num_planned, 0};
  const ScoredRows scored = state.ScoredRowsOf(sequence);
  if (scored.end > 0) share.logit_rows -= rows_for_others;
  share.tokens = std::min(share.tokens, most);
  const std::int32_t count =
      FittingTokens(before, sequence.gap(), state.block_size(), share, scored);
  if (count <= 0 || !Grow(state, sequence, sequence.num_planned + count)) return false;

  // Growing may have dropped a victim's item and moved this one.
  DraftItem& item = ItemFor(state, sequence, before, count, purse);
  StepBudget cost{.tokens = PAGODA_MUTANT(kTokensNotCounted) ? 1 : count,
                  .logit_rows = scored.Within(item.end(), count)};
  item.stretch.num_tokens += count;
  sequence.num_planned += count;
  item.samples = sequence.gap() == 0;
  cost.logit_rows += item.samples && !PAGODA_MUTANT(kRowsNotCounted);
  cost.attention_chunks = AttentionChunks(item.stretch.first_position, item.stretch.num_tokens) -
                          AttentionChunks(before.first_position, before.num_tokens);
  Spend(state, tenant, purse, cost);
  if (item.samples && sequence.has_siblings) ShareLastPromptRow(state, item);
  return true;
}

void GiveAll(SchedulerState& state, RequestIndex index, std::int32_t most, Purse purse) {
  for (const Choice& choice : state.requests[index].request->choices()) {
    if (choice.slot.has_value()) Give(state, *choice.slot, most, purse);
  }
}

}  // namespace pagoda::scheduler
