// From the draft, whose decisions stand from here on, to plain data.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/mutants.h"
#include "scheduler/owner_check.h"
#include "scheduler/planning.h"

namespace pagoda::scheduler {
namespace {

// Bounds are reserved at start (ReservePlan): an append that would allocate is our bug.
template <typename T>
std::uint32_t Append(std::vector<T>& items, const T& item) {
  PAGODA_CHECK(items.size() != items.capacity());
  items.push_back(item);
  return static_cast<std::uint32_t>(items.size() - 1);
}

template <typename T>
Range AppendAll(std::vector<T>& items, std::span<const T> more) {
  PAGODA_CHECK(items.size() + more.size() <= items.capacity());
  const Range range{static_cast<std::uint32_t>(items.size()),
                    static_cast<std::uint32_t>(more.size())};
  items.insert(items.end(), more.begin(), more.end());
  return range;
}

// A copy names its block only now: one that left the draft with its sequence must not keep the
// block waiting for a job that may never be.
void WriteMemoryEffects(SchedulerState& state, StepPlan& plan) {
  for (const DraftEffect& effect : state.draft.effects()) {
    if (effect.source == base::kNullBlock) {
      const std::uint32_t index = Append(plan.zeros, {kOnlyGroup, effect.block});
      Append(plan.memory_effects, {MemoryEffect::Kind::kZero, index});
    } else {
      const std::uint32_t index =
          Append(plan.copies, {kOnlyGroup, effect.source, effect.block, effect.num_slots});
      Append(plan.memory_effects, {MemoryEffect::Kind::kCopy, index});
      if (state.IsRunning(effect.slot)) state.SequenceIn(effect.slot).last_handed_job = plan.job;
    }
  }
}

void CloseSlots(SchedulerState& state, StepPlan& plan) {
  for (std::uint32_t i = 0; i < state.slots.size(); ++i) {
    Slot& slot = state.slots[i];
    if (!slot.is_open_on_device) continue;
    if (slot.request != Slot::kNobody && !slot.must_open) continue;
    slot.is_open_on_device = false;
    Append(plan.closed, base::SlotId(i));
  }
}

void OpenSlot(Slot& slot, SlotOpening opening, StepPlan& plan) {
  PAGODA_CHECK(!slot.is_open_on_device);
  opening.slot_generation = slot.generation;
  Append(plan.opened, opening);
  slot.must_open = false;
  slot.is_open_on_device = true;
}

// Opens the sequence's row, and with it those of choices that know no more than it does: the plan
// carries the prompt once.
void OpenRows(SchedulerState& state, const Sequence& sequence, StepPlan& plan) {
  const NewRequest& request = *state.RequestOf(sequence).request;
  SlotOpening opening;
  opening.slot = sequence.slot;
  opening.sampling = request.sampling();
  opening.num_prompt_tokens = static_cast<std::uint32_t>(sequence.prompt_length);
  opening.history = AppendAll<base::TokenId>(plan.tokens, state.ChoiceOf(sequence).tokens);
  opening.stop_token_ids = AppendAll<base::TokenId>(plan.tokens, request.stop_token_ids());
  opening.bad_words = AppendAll<base::TokenId>(plan.tokens, request.bad_words());
  opening.logprob_token_ids = AppendAll<base::TokenId>(plan.tokens, request.logprob_token_ids());
  opening.allowed_words = AppendAll<std::uint32_t>(plan.allowed_words, request.allowed_words());
  opening.logit_bias = AppendAll<base::LogitBias>(plan.logit_bias, request.logit_bias());
  OpenSlot(state.slots[sequence.slot.value()], opening, plan);
  if (sequence.num_known > sequence.prompt_length) return;
  for (const Choice& choice : request.choices()) {
    if (!choice.slot.has_value() || !state.slots[choice.slot->value()].must_open) continue;
    opening.slot = *choice.slot;
    OpenSlot(state.slots[choice.slot->value()], opening, plan);
  }
}

// Whether the block of the next token may be sealed: it was found whole, up to that token at the
// least (CheckTable).
bool MayStandInSealedBlock(const Sequence& sequence, std::int32_t position,
                           std::int32_t block_size) {
  return position < sequence.num_sealed * block_size || (position + 1) % block_size == 0;
}

// Leading tokens that stand in sealed blocks: computed again for their logits, and never written.
std::uint32_t TokensWithoutKv(const SchedulerState& state, const Sequence& sequence,
                              const DraftItem& item) {
  std::int32_t position = item.stretch.first_position;
  if (!MayStandInSealedBlock(sequence, position, state.block_size())) return 0;
  while (position < item.end()) {
    const base::BlockId block = state.tables.at(item.slot, position / state.block_size());
    if (!IsReadOnly(state.pool.state(block)) || PAGODA_MUTANT(kFullHitIsWritten)) break;
    ++position;
  }
  return static_cast<std::uint32_t>(position - item.stretch.first_position);
}

// The rows of the item that are scored, and the tokens they are about.
void WriteScores(const SchedulerState& state, const DraftItem& item, std::uint32_t work,
                 StepPlan& plan) {
  const Sequence& sequence = state.SequenceIn(item.slot);
  const std::int32_t from = item.stretch.first_position;
  const ScoredRows scored = state.ScoredRowsOf(sequence);
  const std::int32_t count = scored.Within(from, item.stretch.num_tokens);
  if (count == 0) return;
  const std::int32_t first = std::max(from, scored.begin);
  const auto first_row = static_cast<std::uint32_t>(plan.rows.size());
  for (std::int32_t position = first; position < first + count; ++position) {
    Append(plan.rows, {work, static_cast<std::uint32_t>(position - from)});
  }
  const auto tokens =
      std::span<const base::TokenId>(state.ChoiceOf(sequence).tokens)
          .subspan(static_cast<std::size_t>(first) + 1, static_cast<std::size_t>(count));
  Append(plan.scores, {.first_row = first_row,
                       .slot = item.slot,
                       .slot_generation = item.slot_generation,
                       .first_position = static_cast<std::uint32_t>(first + 1),
                       .tokens = AppendAll(plan.tokens, tokens)});
}

void WriteSample(const DraftItem& item, std::uint32_t row, StepPlan& plan) {
  Append(plan.samples, {.row = row,
                        .slot = item.slot,
                        .slot_generation = item.slot_generation,
                        .choice = item.choice,
                        .position = static_cast<std::uint32_t>(item.end())});
}

// A decode's one token stands in the sequence, or is in flight.
void WriteTokens(const SchedulerState& state, const Sequence& sequence, const DraftItem& item,
                 StepPlan& plan) {
  std::int32_t position = item.stretch.first_position;
  if (position < sequence.num_known - 1) {
    const auto& known = state.ChoiceOf(sequence).tokens;
    for (; position < std::min(item.end(), sequence.num_known - 1); ++position) {
      Append(plan.plan_tokens, {known[static_cast<std::size_t>(position)], false});
    }
  }
  for (; position < item.end(); ++position) {
    const bool is_known = position < sequence.num_known;
    PAGODA_CHECK(is_known || position == sequence.num_expected - 1);
    Append(plan.plan_tokens,
           is_known ? PlanToken{sequence.newest_token, false} : PlanToken{0, true});
  }
}

void WriteWork(SchedulerState& state, const DraftItem& item, StepPlan& plan) {
  const Sequence& sequence = state.SequenceIn(item.slot);
  const std::int32_t from = item.stretch.first_position;
  WorkItem work;
  work.slot = item.slot;
  work.first_position = static_cast<std::uint32_t>(from);
  work.num_without_kv = TokensWithoutKv(state, sequence, item);
  work.tokens.begin = static_cast<std::uint32_t>(plan.plan_tokens.size());
  work.tokens.count = static_cast<std::uint32_t>(item.stretch.num_tokens);
  WriteTokens(state, sequence, item, plan);
  work.appended_blocks.begin = static_cast<std::uint32_t>(plan.block_appends.size());
  state.tables.TakeDifferences(item.slot, [&](base::BlockId block, std::int32_t replace_index) {
    Append(plan.block_appends, {kOnlyGroup, block, replace_index});
  });
  work.appended_blocks.count =
      static_cast<std::uint32_t>(plan.block_appends.size()) - work.appended_blocks.begin;
  const std::uint32_t work_index = Append(plan.work, work);
  if (sequence.asks_for_scores) WriteScores(state, item, work_index, plan);
  if (!item.samples) return;
  WriteSample(
      item,
      Append(plan.rows, {work_index, static_cast<std::uint32_t>(item.stretch.num_tokens - 1)}),
      plan);
}

// Draws from the row of an item before it.
void WriteSharedSample(const DraftItem& item, StepPlan& plan) {
  const auto owner = std::ranges::find(plan.samples, *item.row_of, &SampleRequest::slot);
  PAGODA_CHECK(owner != plan.samples.end());
  PAGODA_CHECK(owner->position == static_cast<std::uint32_t>(item.end()));
  WriteSample(item, owner->row, plan);
}

// The sequences of items to come, and the blocks that are asked whether they are sealed.
void FetchAhead(const SchedulerState& state, std::span<const DraftItem> items, std::size_t index) {
  constexpr std::size_t kSequence = 16, kBlock = 8;  // items ahead
  if (index + kSequence < items.size()) state.FetchSequence(items[index + kSequence].slot);
  if (index + kBlock >= items.size()) return;
  const DraftItem& item = items[index + kBlock];
  const std::int32_t position = item.stretch.first_position;
  if ((position + 1) % state.block_size() != 0) return;
  state.pool.Fetch(state.tables.at(item.slot, position / state.block_size()));
}

// A step counts once, however many of the request's choices are in it.
bool IsCounted(LiveRequest& live, const DraftItem& item, base::JobId job) {
  base::JobId& counted = item.is_decode ? live.counted_decode : live.counted_prefill;
  return std::exchange(counted, job) == job;
}

void CountItem(SchedulerState& state, const DraftItem& item, base::JobId job) {
  Sequence& sequence = state.SequenceIn(item.slot);
  sequence.last_job = job;
  sequence.num_expected += item.samples;
  sequence.high_water = std::max(sequence.high_water, item.end());
  if (item.row_of.has_value()) return;
  if (sequence.has_siblings && IsCounted(state.RequestOf(sequence), item, job)) return;
  ++(item.is_decode ? sequence.decode_steps : sequence.prefill_steps);
}

// Where every block is, once per submitted step.
void SampleBlocks(SchedulerState& state) {
  BlockStepTotals& totals = state.block_steps;
  // Slots in their order, also those that nobody has: they hold nothing.
  for (std::uint32_t slot = 0; slot < state.slots.size(); ++slot) {
    const std::int32_t held = state.pool.num_exclusive(base::SlotId(slot));
    state.block_steps_of_slot[slot] += held + PAGODA_MUTANT(kReceiptCountsTwice);
    totals.requests += held;
  }
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    const std::int32_t shared = state.pool.num_shared(base::TenantId(t));
    state.tenants[t].counts.shared_block_steps += shared;
    totals.shared += shared;
  }
  totals.retiring +=
      PAGODA_MUTANT(kReceiptForgetsRetiring) ? 0 : state.pool.num_in(BlockState::kRetiring);
  totals.cached += state.pool.num_in(BlockState::kCached);
  totals.free += state.pool.num_in(BlockState::kFree);
  totals.public_lane += state.pool.num_in(BlockState::kPublic);
  totals.null_block += 1;
  totals.steps += 1;
}

}  // namespace

const StepPlan* CommitDraft(SchedulerState& state) {
  if (state.draft.empty()) return nullptr;
  const base::JobId job = state.draft.job();
  StepPlan& plan = state.plans[job.value() % state.plans.size()];
  plan.Clear();
  plan.job = job;
  WriteMemoryEffects(state, plan);
  CloseSlots(state, plan);
  const std::span<const DraftItem> items = state.draft.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    FetchAhead(state, items, i);
    const DraftItem& item = items[i];
    const Slot& slot = state.slots[item.slot.value()];
    const Sequence& sequence = state.SequenceIn(item.slot);
    PAGODA_CHECK(slot.request == item.place);
    PAGODA_CHECK(slot.generation == item.slot_generation);
    if (slot.must_open) OpenRows(state, sequence, plan);
    if (item.row_of.has_value()) {
      WriteSharedSample(item, plan);
    } else {
      WriteWork(state, item, plan);
    }
    CountItem(state, item, job);
  }
  CheckOwners(state, plan);
  state.jobs.Push(state.draft);
  state.draft.Begin(state.jobs.next_job());
  SampleBlocks(state);
  ++state.num_steps;
  return &plan;
}

}  // namespace pagoda::scheduler
