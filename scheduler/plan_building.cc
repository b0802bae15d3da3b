// From the draft, whose decisions stand from here on, to plain data.
#include <algorithm>

#include "base/check.h"
#include "scheduler/planning.h"

namespace pagoda::scheduler {
namespace {

// Bounds are reserved at start (ReservePlan): an append that would allocate is our bug.
template <typename T>
std::uint32_t Append(std::vector<T>& items, const T& item) {
  PAGODA_CHECK(items.size() < items.capacity());
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

void WriteMemoryEffects(const SchedulerState& state, StepPlan& plan) {
  for (const DraftEffect& effect : state.draft.effects()) {
    if (effect.source == base::kNullBlock) {
      const std::uint32_t index = Append(plan.zeros, {kOnlyGroup, effect.block});
      Append(plan.memory_effects, {MemoryEffect::Kind::kZero, index});
    } else {
      const std::uint32_t index =
          Append(plan.copies, {kOnlyGroup, effect.source, effect.block, effect.num_slots});
      Append(plan.memory_effects, {MemoryEffect::Kind::kCopy, index});
    }
  }
}

void CloseSlots(SchedulerState& state, StepPlan& plan) {
  for (std::uint32_t i = 0; i < state.slots.size(); ++i) {
    Slot& slot = state.slots[i];
    if (!slot.is_open_on_device) continue;
    if (slot.sequence != Slot::kNobody && !slot.must_open) continue;
    slot.is_open_on_device = false;
    Append(plan.closed, base::SlotId(i));
  }
}

void OpenSlot(Slot& slot, const Sequence& sequence, StepPlan& plan) {
  PAGODA_CHECK(!slot.is_open_on_device);
  const NewRequest& request = *sequence.request;
  SlotOpening opening;
  opening.slot = sequence.slot;
  opening.slot_generation = slot.generation;
  opening.sampling = request.sampling();
  opening.num_prompt_tokens = static_cast<std::uint32_t>(request.prompt_length());
  opening.history = AppendAll<base::TokenId>(plan.tokens, request.tokens());
  opening.stop_token_ids = AppendAll<base::TokenId>(plan.tokens, request.stop_token_ids());
  opening.logit_bias = AppendAll<base::LogitBias>(plan.logit_bias, request.logit_bias());
  Append(plan.opened, opening);
  slot.must_open = false;
  slot.is_open_on_device = true;
}

// Leading tokens that stand in sealed blocks: computed again for their logits, and never written.
std::uint32_t TokensWithoutKv(const SchedulerState& state, const DraftItem& item) {
  std::int32_t position = item.stretch.first_position;
  while (position < item.end()) {
    const base::BlockId block = state.tables.at(item.slot, position / state.block_size());
    if (state.pool.state(block) != BlockState::kSealed) break;
    ++position;
  }
  return static_cast<std::uint32_t>(position - item.stretch.first_position);
}

void WriteWork(SchedulerState& state, const DraftItem& item, StepPlan& plan) {
  Sequence& sequence = state.sequences[item.sequence];
  const auto& known = sequence.request->tokens();
  const std::int32_t from = item.stretch.first_position;
  WorkItem work;
  work.slot = item.slot;
  work.first_position = static_cast<std::uint32_t>(from);
  work.num_without_kv = TokensWithoutKv(state, item);
  work.tokens.begin = static_cast<std::uint32_t>(plan.plan_tokens.size());
  work.tokens.count = static_cast<std::uint32_t>(item.stretch.num_tokens);
  for (std::int32_t position = from; position < item.end(); ++position) {
    const auto i = static_cast<std::size_t>(position);
    PAGODA_CHECK(i < known.size() || position == sequence.num_expected - 1);
    Append(plan.plan_tokens, i < known.size() ? PlanToken{known[i], false} : PlanToken{0, true});
  }
  work.appended_blocks.begin = static_cast<std::uint32_t>(plan.block_appends.size());
  state.tables.TakeDifferences(item.slot, [&](base::BlockId block, std::int32_t replace_index) {
    Append(plan.block_appends, {kOnlyGroup, block, replace_index});
  });
  work.appended_blocks.count =
      static_cast<std::uint32_t>(plan.block_appends.size()) - work.appended_blocks.begin;
  const std::uint32_t work_index = Append(plan.work, work);
  if (!item.samples) return;
  const std::uint32_t row =
      Append(plan.rows, {work_index, static_cast<std::uint32_t>(item.stretch.num_tokens - 1)});
  Append(plan.samples, {.row = row,
                        .slot = item.slot,
                        .slot_generation = item.slot_generation,
                        .choice = 0,
                        .position = static_cast<std::uint32_t>(item.end())});
}

void CountItem(SchedulerState& state, const DraftItem& item, base::JobId job) {
  Sequence& sequence = state.sequences[item.sequence];
  sequence.last_job = job;
  sequence.num_expected += item.samples;
  sequence.high_water = std::max(sequence.high_water, item.end());
  ++(item.is_decode ? sequence.receipt.decode_steps : sequence.receipt.prefill_steps);
}

// Where every block is, once per submitted step.
void SampleBlocks(SchedulerState& state) {
  BlockStepTotals& totals = state.block_steps;
  for (const SequenceIndex index : state.running) {
    Sequence& sequence = state.sequences[index];
    const std::int32_t held = state.pool.num_exclusive(sequence.slot);
    sequence.receipt.block_steps += held;
    totals.requests += held;
  }
  totals.shared += state.pool.num_shared();
  totals.retiring += state.pool.num_in(BlockState::kRetiring);
  totals.cached += state.pool.num_in(BlockState::kCached);
  totals.free += state.pool.num_in(BlockState::kFree);
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
  for (const DraftItem& item : state.draft.items()) {
    Slot& slot = state.slots[item.slot.value()];
    const Sequence& sequence = state.sequences[item.sequence];
    PAGODA_CHECK(slot.sequence == item.sequence);
    PAGODA_CHECK(sequence.incarnation == item.incarnation);
    if (slot.must_open) OpenSlot(slot, sequence, plan);
    WriteWork(state, item, plan);
  }
  for (const DraftItem& item : state.draft.items()) CountItem(state, item, job);
  state.jobs.Push(state.draft);
  state.draft.Begin(state.jobs.next_job());
  SampleBlocks(state);
  ++state.num_steps;
  return &plan;
}

}  // namespace pagoda::scheduler
