#include "scheduler/lifecycle.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pagoda::scheduler {
namespace {

// A request whose step failed is tried again with others, then alone, then given up.
constexpr std::int32_t kMaxFailures = 2;

enum class PartialBlock { kPublish, kDrop };

std::span<const base::TokenId> TokensOfBlock(const Sequence& sequence, std::int32_t block_index,
                                             std::int32_t num_tokens, std::int32_t block_size) {
  return std::span<const base::TokenId>(sequence.request->tokens())
      .subspan(static_cast<std::size_t>(block_index) * static_cast<std::size_t>(block_size),
               static_cast<std::size_t>(num_tokens));
}

// A partial last block becomes a copy source. An equal one that is cached gives way; one that is
// pinned makes ours needless.
void PublishPartial(SchedulerState& state, Sequence& sequence, std::int32_t block_index,
                    std::int32_t num_tokens) {
  const base::BlockId block = state.tables.at(sequence.slot, block_index);
  if (state.pool.state(block) != BlockState::kOwned) return;
  ExtendKeys(sequence);
  NamespaceIndex& index = *sequence.cache_namespace;
  const BlockKey& parent = ParentKey(sequence, block_index);
  const auto tokens = TokensOfBlock(sequence, block_index, num_tokens, state.block_size());
  const BlockKey key = index.keyer().Key(parent, tokens);
  if (const auto canonical = index.Find(key, parent, tokens); canonical.has_value()) {
    if (state.pool.state(*canonical) != BlockState::kCached) return;
    state.pool.DropCached(*canonical);
  }
  state.pool.Seal(block);
  state.cache.Insert(index, block, key, parent, tokens);
}

// Last block first, so that a leaf is evicted before the blocks it stands on.
void ReleaseBlocks(SchedulerState& state, Sequence& sequence, PartialBlock partial) {
  const std::int32_t block_size = state.block_size();
  const std::int32_t in_last = sequence.num_computed % block_size;
  if (partial == PartialBlock::kPublish && in_last > 0 && UsesCache(state, sequence)) {
    PublishPartial(state, sequence, sequence.num_computed / block_size, in_last);
  }
  while (state.tables.size(sequence.slot) > 0) {
    const base::BlockId block = state.tables.PopBack(sequence.slot);
    state.pool.Release(block, sequence.slot, sequence.last_job);
  }
}

void StopRunning(SchedulerState& state, SequenceIndex index, PartialBlock partial) {
  Sequence& sequence = state.sequences[index];
  PAGODA_CHECK(sequence.is_running());
  state.draft.Drop(index, sequence.slot);
  ReleaseBlocks(state, sequence, partial);
  Slot& slot = state.slots[sequence.slot.value()];
  PAGODA_CHECK(slot.sequence == index);
  slot.sequence = Slot::kNobody;
  slot.must_open = false;
  const auto place = std::find(state.running.begin(), state.running.end(), index);
  PAGODA_CHECK(place != state.running.end());
  state.running.erase(place);
  if (sequence.cache_namespace != nullptr) {
    state.cache.Close(*std::exchange(sequence.cache_namespace, nullptr));
  }
  sequence.phase = Sequence::Phase::kWaiting;
  sequence.incarnation = 0;
  sequence.num_computed = sequence.num_planned = sequence.num_expected = sequence.num_sealed = 0;
  sequence.last_job = sequence.last_handed_job = base::kNoJob;
}

// Tokens that jobs in flight will still draw for a request that has ended.
std::int32_t TokensInFlight(const SchedulerState& state, const Sequence& sequence) {
  std::int32_t tokens = 0;
  for (std::size_t i = 0; i < state.jobs.size(); ++i) {
    const JobRecord& record = state.jobs.at(i);
    if (record.phase != JobRecord::Phase::kInFlight) continue;
    for (const DraftItem& item : record.items) {
      const bool is_its = item.request == sequence.request->id && item.samples;
      tokens += is_its && item.end() >= sequence.num_known();
    }
  }
  return tokens;
}

// Takes `block` in place of the sequence's own copy, or as its next block.
void Adopt(SchedulerState& state, Sequence& sequence, std::int32_t block_index,
           base::BlockId block) {
  BlockRef ref = state.pool.Hold(block, sequence.slot);
  if (block_index < state.tables.size(sequence.slot)) {
    const base::BlockId own = state.tables.Replace(sequence.slot, block_index, std::move(ref));
    state.pool.Release(own, sequence.slot, sequence.last_job);
  } else {
    state.tables.Append(sequence.slot, std::move(ref));
  }
  ++sequence.receipt.blocks_reused;
  ++state.counters.num_adoptions;
}

// A prompt block that was about to be computed for the first time was found instead.
void CountFound(SchedulerState& state, Sequence& sequence) {
  const std::int32_t prompt_length = sequence.request->prompt_length();
  if (sequence.num_planned > prompt_length) return;
  if (sequence.high_water >= sequence.num_planned) return;
  // At least one token of a prompt is always computed.
  const std::int32_t found =
      std::min(state.block_size(), prompt_length - 1 - sequence.receipt.cached_tokens);
  sequence.receipt.cached_tokens += found;
  state.counters.cached_tokens += found;
}

// One full block of the sequence is computed. The index keeps one block per content: an equal
// cached one gives way to ours, an equal pinned one is adopted.
void PublishFull(SchedulerState& state, Sequence& sequence, std::int32_t block_index) {
  const base::BlockId block = state.tables.at(sequence.slot, block_index);
  if (state.pool.state(block) == BlockState::kSealed) return;
  NamespaceIndex& index = *sequence.cache_namespace;
  const BlockKey& key = sequence.request->keys()[static_cast<std::size_t>(block_index)];
  const BlockKey& parent = ParentKey(sequence, block_index);
  const auto tokens = TokensOfBlock(sequence, block_index, state.block_size(), state.block_size());
  if (const auto canonical = index.Find(key, parent, tokens); canonical.has_value()) {
    if (state.pool.state(*canonical) != BlockState::kCached) {
      Adopt(state, sequence, block_index, *canonical);
      return;
    }
    state.pool.DropCached(*canonical);
  }
  state.pool.Seal(block);
  state.cache.Insert(index, block, key, parent, tokens);
}

}  // namespace

bool UsesCache(const SchedulerState& state, const Sequence& sequence) {
  return !sequence.request->one_request_namespace && sequence.key_epoch == state.cache.epoch();
}

void ExtendKeys(Sequence& sequence) {
  sequence.request->ExtendKeys(sequence.cache_namespace->keyer());
}

const BlockKey& ParentKey(const Sequence& sequence, std::int32_t block_index) {
  if (block_index == 0) return sequence.cache_namespace->keyer().root();
  return sequence.request->keys()[static_cast<std::size_t>(block_index) - 1];
}

void StartRunning(SchedulerState& state, SequenceIndex index) {
  Sequence& sequence = state.sequences[index];
  PAGODA_CHECK(sequence.phase == Sequence::Phase::kWaiting);
  const auto slot = std::ranges::find(state.slots, Slot::kNobody, &Slot::sequence);
  PAGODA_CHECK(slot != state.slots.end());
  slot->sequence = index;
  slot->must_open = true;
  ++slot->generation;
  sequence.slot = base::SlotId(static_cast<std::uint32_t>(slot - state.slots.begin()));
  sequence.phase = Sequence::Phase::kRunning;
  sequence.incarnation = ++state.incarnations;
  sequence.num_expected = sequence.num_known();
  state.tables.ForgetSent(sequence.slot);
  const auto is_older = [&](SequenceIndex a, SequenceIndex b) {
    return state.sequences[a].request->id < state.sequences[b].request->id;
  };
  state.running.insert(std::ranges::upper_bound(state.running, index, is_older), index);
}

void Preempt(SchedulerState& state, SequenceIndex index) {
  StopRunning(state, index, PartialBlock::kPublish);
  Sequence& sequence = state.sequences[index];
  ++sequence.receipt.preemptions;
  ++state.counters.num_preemptions;
  state.QueueOf(sequence).Insert(index);
}

void RollBack(SchedulerState& state, SequenceIndex index) {
  Sequence& sequence = state.sequences[index];
  if (++sequence.num_failures > kMaxFailures) {
    End(state, index, FinishReason::kFailed);
    return;
  }
  StopRunning(state, index, PartialBlock::kDrop);
  state.QueueOf(sequence).Insert(index);
}

void End(SchedulerState& state, SequenceIndex index, FinishReason reason) {
  Sequence& sequence = state.sequences[index];
  sequence.receipt.discarded_tokens += TokensInFlight(state, sequence);
  if (sequence.is_running()) {
    const bool is_natural = reason == FinishReason::kStop || reason == FinishReason::kLength;
    StopRunning(state, index, is_natural ? PartialBlock::kPublish : PartialBlock::kDrop);
  } else {
    state.QueueOf(sequence).Remove(index);
  }
  sequence.receipt.generated_tokens = sequence.num_known() - sequence.request->prompt_length();
  if (!sequence.was_admitted) {
    sequence.receipt.queue_steps = state.num_steps - sequence.added_at_step;
  }
  const bool was_admitted = sequence.was_admitted;
  const Receipt receipt = sequence.receipt;
  PAGODA_CHECK_MSG(state.finished.size() < state.finished.capacity(),
                   "finish events were not taken");
  state.finished.push_back({.request = state.sequences.Remove(index),
                            .reason = reason,
                            .was_admitted = was_admitted,
                            .receipt = receipt});
}

void SealComputed(SchedulerState& state, Sequence& sequence, std::int32_t num_computed) {
  sequence.num_computed = std::max(sequence.num_computed, num_computed);
  if (!UsesCache(state, sequence)) return;
  ExtendKeys(sequence);
  while ((sequence.num_sealed + 1) * state.block_size() <= sequence.num_computed) {
    PublishFull(state, sequence, sequence.num_sealed);
    ++sequence.num_sealed;
  }
}

void AdoptAhead(SchedulerState& state, SequenceIndex index) {
  Sequence& sequence = state.sequences[index];
  const std::int32_t block_size = state.block_size();
  if (!UsesCache(state, sequence)) return;
  if (state.draft.ItemOf(sequence.slot) != nullptr) return;
  while (sequence.num_planned % block_size == 0 && state.table_room_entries > 0 &&
         sequence.num_planned + block_size <= sequence.num_known() &&
         sequence.num_expected == sequence.num_known()) {
    const std::int32_t next = sequence.num_planned / block_size;
    const bool has_own = next < state.tables.size(sequence.slot);
    ExtendKeys(sequence);
    const auto tokens = TokensOfBlock(sequence, next, block_size, block_size);
    const auto found =
        sequence.cache_namespace->Find(sequence.request->keys()[static_cast<std::size_t>(next)],
                                       ParentKey(sequence, next), tokens);
    if (!found.has_value()) return;
    if (has_own) {
      const base::BlockId own = state.tables.at(sequence.slot, next);
      if (own == *found || state.pool.state(own) != BlockState::kOwned) return;
    }
    const bool pins_one_more = state.pool.state(*found) == BlockState::kCached;
    if (pins_one_more && !state.pool.CanTake(sequence.request->tenant, 1)) return;

    Adopt(state, sequence, next, *found);
    --state.table_room_entries;
    sequence.num_planned += block_size;
    // Earlier blocks may still be in the making: then it counts as computed when they are.
    if (sequence.num_computed >= next * block_size) {
      sequence.num_computed = std::max(sequence.num_computed, sequence.num_planned);
      sequence.num_sealed = std::max(sequence.num_sealed, next + 1);
    }
    CountFound(state, sequence);
    // All is found: the last token is computed again for its logits, and written nowhere.
    if (sequence.num_planned == sequence.num_expected) --sequence.num_planned;
  }
}

bool NextBlockIsBeingWritten(const SchedulerState& state, Sequence& sequence) {
  const std::int32_t block_size = state.block_size();
  if (!UsesCache(state, sequence) || sequence.num_planned % block_size != 0) return false;
  if (sequence.num_planned + block_size > sequence.num_known()) return false;
  ExtendKeys(sequence);
  const std::int32_t next = sequence.num_planned / block_size;
  const auto position = static_cast<std::size_t>(next);
  for (const SequenceIndex other_index : state.running) {
    const Sequence& other = state.sequences[other_index];
    if (&other == &sequence || other.cache_namespace != sequence.cache_namespace) continue;
    if (!UsesCache(state, other) || other.request->keys().size() <= position) continue;
    const bool is_writing =
        other.num_sealed <= next && (next + 1) * block_size <= other.num_planned;
    if (is_writing && other.request->keys()[position] == sequence.request->keys()[position]) {
      return true;
    }
  }
  return false;
}

}  // namespace pagoda::scheduler
