#include "scheduler/lifecycle.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/mutants.h"
#include "scheduler/owner_check.h"

namespace pagoda::scheduler {
namespace {

// A request whose step failed is tried again with others, then alone, then given up.
constexpr std::int32_t kMaxFailures = 2;

enum class PartialBlock { kPublish, kDrop };

// Some of the tokens of a block, from its first one on.
std::span<const base::TokenId> TokensOfBlock(const SchedulerState& state, const Sequence& sequence,
                                             std::int32_t block_index, std::int32_t num_tokens) {
  return std::span<const base::TokenId>(state.ChoiceOf(sequence).tokens)
      .subspan(static_cast<std::size_t>(block_index) * static_cast<std::size_t>(state.block_size()),
               static_cast<std::size_t>(num_tokens));
}

const BlockKey& KeyOf(const SchedulerState& state, const Sequence& sequence,
                      std::int32_t block_index) {
  return state.ChoiceOf(sequence).keys[static_cast<std::size_t>(block_index)];
}

// A partial last block becomes a copy source. An equal one that is cached gives way; one that is
// pinned makes ours needless.
void PublishPartial(SchedulerState& state, Sequence& sequence, std::int32_t block_index,
                    std::int32_t num_tokens) {
  const base::BlockId block = state.tables.at(sequence.slot, block_index);
  if (state.pool.state(block) != BlockState::kOwned) return;
  ExtendKeys(state, sequence);
  NamespaceIndex& index = *state.RequestOf(sequence).cache_namespace;
  const BlockKey& parent = ParentKey(state, sequence, block_index);
  const auto tokens = TokensOfBlock(state, sequence, block_index, num_tokens);
  const BlockKey key = index.keyer().Key(parent, tokens);
  if (const auto canonical = index.Find(key, parent, tokens); canonical.has_value()) {
    if (state.pool.state(*canonical) != BlockState::kCached) return;
    state.pool.DropCached(*canonical);
  }
  state.pool.Seal(block);
  state.cache.Insert(index, block, key, parent, tokens);
}

// What a release will look at, of the block that stands so far from the end of the table.
void FetchForRelease(const SchedulerState& state, base::SlotId slot, std::int32_t from_end) {
  const std::int32_t index = state.tables.size(slot) - from_end;
  if (index < 0) return;
  const base::BlockId block = state.tables.at(slot, index);
  state.pool.Fetch(block);
  state.cache.FetchHasEntry(block);
}

// Last block first, so that a leaf is evicted before the blocks it stands on.
void ReleaseBlocks(SchedulerState& state, Sequence& sequence, PartialBlock partial) {
  const std::int32_t block_size = state.block_size();
  const std::int32_t in_last =
      (sequence.num_computed + PAGODA_MUTANT(kPartialUncomputed)) % block_size;
  if (partial == PartialBlock::kPublish && in_last > 0 &&
      UsesCache(state, state.RequestOf(sequence))) {
    PublishPartial(state, sequence, sequence.num_computed / block_size, in_last);
  }
  constexpr std::int32_t kAhead = 8;
  for (std::int32_t i = 1; i <= kAhead; ++i) FetchForRelease(state, sequence.slot, i);
  while (state.tables.size(sequence.slot) > 0) {
    FetchForRelease(state, sequence.slot, kAhead + 1);
    const base::BlockId block = state.tables.PopBack(sequence.slot);
    if (block == base::kNullBlock) continue;  // a place that waits for the prompt's block
    // A plan without an item of the sequence may have copied the prompt's end into it.
    const bool may_be_copied =
        !PAGODA_MUTANT(kForkCopyUnnamed) &&
        state.tables.size(sequence.slot) == sequence.prompt_length / block_size;
    const base::JobId last_job =
        may_be_copied ? std::max(sequence.last_job, sequence.last_handed_job) : sequence.last_job;
    state.pool.Release(block, sequence.slot, last_job);
  }
}

// What the sequence has counted for its request goes back to it.
void CountStay(SchedulerState& state, const Sequence& sequence) {
  Receipt& receipt = state.RequestOf(sequence).receipt;
  receipt.prefill_steps += sequence.prefill_steps;
  receipt.decode_steps += sequence.decode_steps;
  receipt.block_steps += state.block_steps_of_slot[sequence.slot.value()];
  Choice& choice = state.ChoiceOf(sequence);
  choice.high_water = sequence.high_water;
  choice.slot.reset();
}

void StopSequence(SchedulerState& state, base::SlotId slot_id, PartialBlock partial) {
  Sequence& sequence = state.SequenceIn(slot_id);
  if (!PAGODA_MUTANT(kVictimKeepsItem)) state.draft.Drop(slot_id);
  if (!PAGODA_MUTANT(kForkCopyKept)) {
    std::erase_if(state.fork_copies, [&](const DraftEffect& copy) { return copy.slot == slot_id; });
  }
  ReleaseBlocks(state, sequence, partial);
  Slot& slot = state.slots[slot_id.value()];
  PAGODA_CHECK(slot.request == sequence.request);
  slot.request = Slot::kNobody;
  slot.must_open = false;
  const auto place = std::ranges::find(state.running, slot_id);
  PAGODA_CHECK(place != state.running.end());
  state.running.erase(place);
  --state.TenantOf(sequence).num_slots;
  CountStay(state, sequence);
}

// The whole prompt is computed: its blocks change hands. Before the first request, so it may
// allocate.
void GiveToPublicLane(SchedulerState& state, const LiveRequest& live) {
  const NewRequest& request = *live.request;
  const base::SlotId slot = *request.choice(0).slot;
  PAGODA_CHECK(state.SequenceIn(slot).num_computed == request.prompt_length());
  std::vector<base::BlockId> blocks(static_cast<std::size_t>(state.tables.size(slot)));
  for (std::size_t i = blocks.size(); i-- > 0;) {
    blocks[i] = state.tables.PopBack(slot);
    state.pool.MakePublic(blocks[i], slot);
  }
  const auto prompt = std::span<const base::TokenId>(request.tokens())
                          .first(static_cast<std::size_t>(request.prompt_length()));
  state.public_lane.Register(prompt, blocks, live.public_readers);
}

// The last of its sequences has stopped, or stops here. The first choice goes last: it held the
// prompt before the others did.
void StopRunning(SchedulerState& state, RequestIndex index, PartialBlock partial) {
  LiveRequest& live = state.requests[index];
  PAGODA_CHECK(live.is_running());
  for (std::uint32_t i = live.request->num_choices(); i-- > 0;) {
    if (const auto slot = live.request->choice(i).slot) StopSequence(state, *slot, partial);
  }
  if (live.cache_namespace != nullptr) {
    state.cache.Close(*std::exchange(live.cache_namespace, nullptr));
  }
  live.phase = LiveRequest::Phase::kWaiting;
  live.incarnation = 0;
  --state.TenantOf(live).num_running;
}

// Tokens that jobs in flight will still draw for a choice that has ended.
std::int32_t TokensInFlight(const SchedulerState& state, const LiveRequest& live,
                            std::uint32_t choice) {
  std::int32_t tokens = 0;
  for (std::size_t i = 0; i < state.jobs.size(); ++i) {
    const JobRecord& record = state.jobs.at(i);
    if (record.phase != JobRecord::Phase::kInFlight) continue;
    for (const DraftItem& item : record.items) {
      const bool is_its = item.request == live.request->id && item.choice == choice && item.samples;
      tokens += is_its && item.end() >= live.request->choice(choice).num_known();
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
  ++state.RequestOf(sequence).receipt.blocks_reused;
  ++state.counters.num_adoptions;
}

// A prompt block that was about to be computed for the first time was found instead.
void CountFound(SchedulerState& state, Sequence& sequence) {
  if (sequence.num_planned > sequence.prompt_length) return;
  if (sequence.high_water >= sequence.num_planned) return;
  // At least one token of a prompt is always computed.
  Receipt& receipt = state.RequestOf(sequence).receipt;
  const std::int32_t found =
      std::min(state.block_size(), sequence.prompt_length - 1 - receipt.cached_tokens);
  receipt.cached_tokens += found;
  state.counters.cached_tokens += found;
}

// One full block of the sequence is computed. The index keeps one block per content: an equal
// cached one gives way to ours, an equal pinned one is adopted.
void PublishFull(SchedulerState& state, Sequence& sequence, std::int32_t block_index) {
  const base::BlockId block = state.tables.at(sequence.slot, block_index);
  if (state.pool.state(block) == BlockState::kSealed) return;
  NamespaceIndex& index = *state.RequestOf(sequence).cache_namespace;
  const BlockKey& key = KeyOf(state, sequence, block_index);
  const BlockKey& parent = ParentKey(state, sequence, block_index);
  const auto tokens = TokensOfBlock(state, sequence, block_index, state.block_size());
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

// What it knows of its request for as long as it runs.
void TellSequence(const LiveRequest& live, Sequence& sequence) {
  const NewRequest& request = *live.request;
  const Choice& choice = request.choice(sequence.choice);
  sequence.tenant = request.tenant;
  sequence.request_id = request.id;
  sequence.incarnation = live.incarnation;
  sequence.prompt_length = request.prompt_length();
  sequence.max_length = request.prompt_length() + request.max_tokens();
  sequence.num_known = sequence.num_expected = choice.num_known();
  sequence.newest_token = choice.tokens.back();
  sequence.high_water = choice.high_water;
  sequence.is_paused = live.paused;
  sequence.has_siblings = request.num_choices() > 1;
  sequence.asks_for_scores = request.sampling().prompt_logprobs.has_value();
  sequence.began_after_failure = live.num_failures > 0;
  sequence.owner = OwnerOf(live);
}

void StartSequence(SchedulerState& state, RequestIndex index, std::uint32_t choice_index) {
  ++state.TenantOf(state.requests[index]).num_slots;
  const auto slot = std::ranges::find(state.slots, Slot::kNobody, &Slot::request);
  PAGODA_CHECK(slot != state.slots.end());
  slot->request = index;
  slot->must_open = true;
  ++slot->generation;
  const base::SlotId id(static_cast<std::uint32_t>(slot - state.slots.begin()));
  Choice& choice = state.requests[index].request->choice(choice_index);
  choice.slot = id;
  Sequence& sequence = state.SequenceIn(id) = {};
  state.block_steps_of_slot[id.value()] = 0;
  sequence.request = index;
  sequence.choice = choice_index;
  sequence.slot = id;
  sequence.record = &choice;
  TellSequence(state.requests[index], sequence);
  state.tables.ForgetSent(id);
  const auto age = [&](base::SlotId running) {
    const Sequence& other = state.SequenceIn(running);
    return std::pair(other.request_id, other.choice);
  };
  const auto is_older = [&](base::SlotId a, base::SlotId b) { return age(a) < age(b); };
  state.running.insert(std::ranges::upper_bound(state.running, id, is_older), id);
}

// The end of a request whose choices have all ended.
void Finish(SchedulerState& state, RequestIndex index, FinishReason reason) {
  LiveRequest& live = state.requests[index];
  PAGODA_CHECK(live.num_open == 0);
  for (const Choice& choice : live.request->choices()) {
    live.receipt.generated_tokens += choice.num_known() - live.request->prompt_length();
  }
  if (!live.was_admitted) live.receipt.queue_steps = state.num_steps - live.added_at_step;
  state.TenantOf(live).num_new -= !live.was_admitted;
  state.num_with_deadline -= !live.request->deadline().is_never();
  const bool was_admitted = live.was_admitted;
  const base::Instant admitted_at = live.admitted_at;
  const Receipt receipt = live.receipt;
  PAGODA_CHECK_MSG(state.finished.size() < state.finished.capacity(),
                   "finish events were not taken");
  state.finished.push_back({.request = state.requests.Remove(index),
                            .reason = reason,
                            .was_admitted = was_admitted,
                            .admitted_at = admitted_at,
                            .receipt = receipt});
}

void CloseChoice(SchedulerState& state, LiveRequest& live, std::uint32_t index,
                 FinishReason reason) {
  live.receipt.discarded_tokens += TokensInFlight(state, live, index);
  live.request->choice(index).finish = reason;
  --live.num_open;
}

bool HasAllKeys(const SchedulerState& state, const Sequence& sequence) {
  return (sequence.num_keyed + 1) * state.block_size() > sequence.num_known;
}

// All of a block's tokens are known, and none of them is planned.
bool StandsBeforeKnownBlock(const Sequence& sequence, std::int32_t block_size) {
  return sequence.num_planned + block_size <= sequence.num_known &&
         sequence.num_planned % block_size == 0;
}

bool IsNatural(FinishReason reason) {
  return reason == FinishReason::kStop || reason == FinishReason::kLength;
}

}  // namespace

bool ReadsCache(const SchedulerState& state, const LiveRequest& live) {
  return UsesCache(state, live) && (!live.computes_all() || PAGODA_MUTANT(kSkipperAdopts));
}

bool UsesCache(const SchedulerState& state, const LiveRequest& live) {
  const NewRequest& request = *live.request;
  const bool is_alone = request.one_request_namespace && !PAGODA_MUTANT(kAnonymousPublishes);
  return !is_alone &&
         (PAGODA_MUTANT(kOldEpochPublishes) || live.key_epoch == state.cache.epoch(request.tenant));
}

void ExtendKeys(SchedulerState& state, Sequence& sequence) {
  if (HasAllKeys(state, sequence)) return;
  LiveRequest& live = state.RequestOf(sequence);
  live.request->ExtendKeys(live.cache_namespace->keyer(), sequence.choice);
  sequence.num_keyed = sequence.num_known / state.block_size();
}

void FetchForSeal(SchedulerState& state, Sequence& sequence, std::int32_t block_index) {
  const base::BlockId block = state.tables.at(sequence.slot, block_index);
  state.pool.Fetch(block);
  if (!UsesCache(state, state.RequestOf(sequence))) return;
  state.cache.FetchEntry(block);
  ExtendKeys(state, sequence);
  if (sequence.num_keyed <= block_index) return;
  state.cache.FetchChains(KeyOf(state, sequence, block_index),
                          ParentKey(state, sequence, block_index));
}

const BlockKey& ParentKey(const SchedulerState& state, const Sequence& sequence,
                          std::int32_t block_index) {
  if (block_index == 0) return state.RequestOf(sequence).cache_namespace->keyer().root();
  return KeyOf(state, sequence, block_index - 1);
}

void StartRunning(SchedulerState& state, RequestIndex index) {
  LiveRequest& live = state.requests[index];
  PAGODA_CHECK(live.phase == LiveRequest::Phase::kWaiting);
  live.phase = LiveRequest::Phase::kRunning;
  live.incarnation = ++state.incarnations;
  ++state.TenantOf(live).num_running;
  for (std::uint32_t i = 0; i < live.request->num_choices(); ++i) {
    if (live.request->choice(i).is_open()) StartSequence(state, index, i);
  }
}

void Preempt(SchedulerState& state, RequestIndex index) {
  StopRunning(state, index, PartialBlock::kPublish);
  LiveRequest& live = state.requests[index];
  ++live.receipt.preemptions;
  ++state.counters.num_preemptions;
  ++state.TenantOf(live).counts.num_preemptions;
  state.QueueOf(live).Insert(index);
}

void RollBack(SchedulerState& state, RequestIndex index) {
  LiveRequest& live = state.requests[index];
  if (++live.num_failures > kMaxFailures + 100 * PAGODA_MUTANT(kFailsForEver)) {
    End(state, index, FinishReason::kFailed);
    return;
  }
  StopRunning(state, index,
              PAGODA_MUTANT(kFailurePublishes) ? PartialBlock::kPublish : PartialBlock::kDrop);
  state.QueueOf(live).Insert(index);
}

void End(SchedulerState& state, RequestIndex index, FinishReason reason) {
  LiveRequest& live = state.requests[index];
  for (std::uint32_t i = 0; i < live.request->num_choices(); ++i) {
    if (live.request->choice(i).is_open()) CloseChoice(state, live, i, reason);
  }
  if (live.is_running()) {
    if (live.is_public_prefix && IsNatural(reason)) GiveToPublicLane(state, live);
    StopRunning(state, index, IsNatural(reason) ? PartialBlock::kPublish : PartialBlock::kDrop);
  } else {
    state.QueueOf(live).Remove(index);
  }
  Finish(state, index, reason);
}

void EndChoice(SchedulerState& state, RequestIndex index, std::uint32_t choice,
               FinishReason reason) {
  LiveRequest& live = state.requests[index];
  PAGODA_CHECK(live.request->choice(choice).is_open());
  if (live.num_open == 1) return End(state, index, reason);
  CloseChoice(state, live, choice, reason);
  if (!live.is_running()) return;
  const base::SlotId slot = *live.request->choice(choice).slot;
  const bool was_first = !state.SequenceIn(slot).waits_for_prompt;
  StopSequence(state, slot, IsNatural(reason) ? PartialBlock::kPublish : PartialBlock::kDrop);
  // A result from before a preemption may end the choice that computes the prompt anew for the
  // others: another one has to.
  const Sequence& next = state.SequenceIn(*live.first_open().slot);
  if (was_first && next.waits_for_prompt) Preempt(state, index);
}

std::int32_t BlocksHeld(const SchedulerState& state, const LiveRequest& live) {
  const std::int32_t shared = live.request->prompt_length() / state.block_size();
  std::int32_t held = shared;
  for (const Choice& choice : live.request->choices()) {
    if (choice.slot.has_value()) held += state.tables.size(*choice.slot) - shared;
  }
  return held;
}

void SealComputed(SchedulerState& state, Sequence& sequence, std::int32_t num_computed) {
  sequence.num_computed = std::max(sequence.num_computed, num_computed);
  const auto is_full = [&] {
    return (sequence.num_sealed + 1) * state.block_size() <=
           sequence.num_computed + PAGODA_MUTANT(kSealsATokenEarly);
  };
  if (!is_full() && HasAllKeys(state, sequence)) return;
  if (!UsesCache(state, state.RequestOf(sequence))) return;
  ExtendKeys(state, sequence);
  while (is_full()) {
    PublishFull(state, sequence, sequence.num_sealed);
    ++sequence.num_sealed;
  }
}

void AdoptAhead(SchedulerState& state, Sequence& sequence) {
  const std::int32_t block_size = state.block_size();
  if (!StandsBeforeKnownBlock(sequence, block_size)) return;
  const LiveRequest& live = state.RequestOf(sequence);
  if (!ReadsCache(state, live)) return;
  if (state.draft.ItemOf(sequence.slot) != nullptr) return;
  while (StandsBeforeKnownBlock(sequence, block_size) &&
         state.TenantOf(live).table_room_entries > 0 &&
         sequence.num_expected == sequence.num_known) {
    const std::int32_t next = sequence.num_planned / block_size;
    const bool has_own = next < state.tables.size(sequence.slot);
    ExtendKeys(state, sequence);
    const auto found =
        live.cache_namespace->Find(KeyOf(state, sequence, next), ParentKey(state, sequence, next),
                                   TokensOfBlock(state, sequence, next, block_size));
    if (!found.has_value()) return;
    if (has_own) {
      const base::BlockId own = state.tables.at(sequence.slot, next);
      if (own == *found || state.pool.state(own) != BlockState::kOwned) return;
    }
    const bool pins_one_more = state.pool.state(*found) == BlockState::kCached;
    const bool may =
        PAGODA_MUTANT(kAdoptsBeyondShare) || state.pool.CanTake(live.request->tenant, 1);
    if (pins_one_more && !may) return;

    // What it has not been told of is counted when its item begins.
    if (state.tables.is_told(sequence.slot, next)) --state.TenantOf(live).table_room_entries;
    Adopt(state, sequence, next, *found);
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

bool NextBlockIsBeingWritten(SchedulerState& state, Sequence& sequence) {
  const std::int32_t block_size = state.block_size();
  if (!StandsBeforeKnownBlock(sequence, block_size)) return false;
  const LiveRequest& live = state.RequestOf(sequence);
  if (!ReadsCache(state, live)) return false;
  ExtendKeys(state, sequence);
  const std::int32_t next = sequence.num_planned / block_size;
  const BlockKey& key = KeyOf(state, sequence, next);
  // Of all that run, in the order of their slots: any of them will do.
  for (const Sequence& other : state.sequences) {
    const base::SlotId slot = other.slot;
    const bool is_writing =
        other.num_sealed <= next && (next + 1) * block_size <= other.num_planned;
    if (!is_writing || PAGODA_MUTANT(kWaitsForNoKey)) continue;
    if (!state.IsRunning(slot)) continue;
    const LiveRequest& other_request = state.RequestOf(other);
    if (slot == sequence.slot || other_request.cache_namespace != live.cache_namespace) continue;
    if (!UsesCache(state, other_request) || other.waits_for_prompt) continue;
    const std::vector<BlockKey>& keys = state.ChoiceOf(other).keys;
    if (keys.size() <= static_cast<std::size_t>(next)) continue;
    if (keys[static_cast<std::size_t>(next)] == key) return true;
  }
  return false;
}

}  // namespace pagoda::scheduler
