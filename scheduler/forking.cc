#include "scheduler/forking.h"

#include <utility>

#include "base/check.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {
namespace {

// Calls take(sequence) for each other choice of the request that waits for its prompt.
template <typename Take>
void ForEachWaiting(SchedulerState& state, RequestIndex index, Take take) {
  for (const Choice& choice : state.requests[index].request->choices()) {
    if (!choice.slot.has_value()) continue;
    Sequence& sequence = state.SequenceIn(*choice.slot);
    if (sequence.waits_for_prompt) take(sequence);
  }
}

void TakePrompt(SchedulerState& state, const Sequence& first, Sequence& other) {
  const std::int32_t num_full = first.prompt_length / state.block_size();
  const std::int32_t num_in_last = first.prompt_length % state.block_size();
  for (std::int32_t i = 0; i < num_full; ++i) {
    BlockRef ref = state.pool.Hold(state.tables.at(first.slot, i), other.slot);
    const base::BlockId hole = state.tables.Replace(other.slot, i, std::move(ref));
    PAGODA_CHECK(hole == base::kNullBlock);
  }
  other.waits_for_prompt = false;
  other.num_sealed = num_full;
  other.num_computed = num_full * state.block_size();
  other.num_planned = other.num_computed;
  if (num_in_last == 0) return;
  other.num_planned = other.prompt_length;
  PAGODA_CHECK(state.fork_copies.size() < state.fork_copies.capacity());
  state.fork_copies.push_back(
      {.block = state.tables.at(other.slot, num_full),
       .source = state.tables.at(first.slot, num_full),
       .num_slots = static_cast<std::uint32_t>(num_in_last - PAGODA_MUTANT(kForkCopiesShort)),
       .slot = other.slot});
}

}  // namespace

void ShareLastPromptRow(SchedulerState& state, const DraftItem& item) {
  const DraftItem base = item;  // adding may move it
  ForEachWaiting(state, item.place, [&](Sequence& other) {
    if (other.num_expected != other.prompt_length) return;  // it has its first token, or will have
    PAGODA_CHECK(base.end() == other.prompt_length);
    DraftItem shared = base;
    shared.choice = other.choice;
    shared.slot = other.slot;
    shared.slot_generation = state.slots[other.slot.value()].generation;
    shared.stretch = {base.end(), 0};
    shared.is_decode = false;
    shared.row_of = base.slot;
    state.draft.AddItem(shared);
  });
}

void ForkWaiting(SchedulerState& state, const Sequence& first) {
  if (first.waits_for_prompt || first.num_computed < first.prompt_length) return;
  bool is_waited_for = false;
  ForEachWaiting(state, first.request, [&](Sequence&) { is_waited_for = true; });
  if (!is_waited_for) return;
  // What is never indexed is sealed here: it is written no more, and gets more holders.
  const std::int32_t num_full = first.prompt_length / state.block_size();
  for (std::int32_t i = 0; i < num_full; ++i) {
    const base::BlockId block = state.tables.at(first.slot, i);
    if (state.pool.state(block) == BlockState::kOwned) state.pool.Seal(block);
  }
  ForEachWaiting(state, first.request, [&](Sequence& other) { TakePrompt(state, first, other); });
}

void PlanForkCopies(SchedulerState& state) {
  for (const DraftEffect& copy : state.fork_copies) state.draft.AddCopy(copy);
  state.fork_copies.clear();
}

}  // namespace pagoda::scheduler
