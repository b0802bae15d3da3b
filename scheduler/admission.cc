// An admission looks first (Offer, nothing changes), decides for all choices together, and only
// then takes.
#include "scheduler/admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/growth.h"
#include "scheduler/lifecycle.h"
#include "scheduler/owner_check.h"

namespace pagoda::scheduler {
namespace {

// Children of the matched parent that are looked at for the best partial match.
constexpr int kMaxCopyCandidates = 4;

// What the cache and the pool have for one choice of a waiting request.
struct Offer {
  std::int32_t num_hits = 0;    // full blocks, in state.hits
  std::int32_t num_cached = 0;  // of them, held by nobody yet; shared ones count for the first only
  std::int32_t num_blocks = 0;  // to hand out
  bool waits_for_prompt = false;  // the places before them stay empty (forking.h)
  std::optional<base::BlockId> copy_source;
  std::int32_t copied_tokens = 0;

  std::int32_t num_pinned() const { return num_blocks + num_cached; }
};

// Blocks are taken for all known tokens; after the third preemption also for some of what is still
// to come, so that it does not only come to be preempted again.
std::int32_t TokensToHold(const LiveRequest& live, const Choice& choice, std::int32_t block_size) {
  const std::int32_t known = choice.num_known();
  if (live.receipt.preemptions < kPreemptionsBeforeReserve) return known;
  const std::int32_t generated = known - live.request->prompt_length();
  const std::int32_t max_length = live.request->prompt_length() + live.request->max_tokens();
  const std::int32_t wanted =
      known + std::min(max_length - known, std::max(4 * block_size, generated));
  return std::max(known, std::min(wanted, max_length - 1));
}

// The longest match with the next block's tokens among the newest children. At least one token
// stays to be computed.
void LookForCopySource(const SchedulerState& state, const Choice& choice,
                       const NamespaceIndex& index, Offer& offer) {
  const std::int32_t first = offer.num_hits * state.block_size();
  const auto tokens =
      std::span<const base::TokenId>(choice.tokens).subspan(static_cast<std::size_t>(first));
  if (tokens.size() < 2) return;
  const BlockKey& parent = offer.num_hits == 0
                               ? index.keyer().root()
                               : choice.keys[static_cast<std::size_t>(offer.num_hits) - 1];
  int candidates = 0;
  for (auto child = index.FirstChild(parent); child.has_value() && candidates < kMaxCopyCandidates;
       child = index.NextChild(*child)) {
    const BlockState block_state = state.pool.state(*child);
    if (block_state != BlockState::kSealed && block_state != BlockState::kCached) continue;
    ++candidates;
    const auto has = state.cache.tokens_of(*child);
    const auto wanted = tokens.first(tokens.size() - 1);
    const auto length =
        static_cast<std::int32_t>(std::ranges::mismatch(has, wanted).in1 - has.begin());
    if (length <= offer.copied_tokens) continue;
    offer.copied_tokens = length;
    offer.copy_source = *child;
  }
}

// What the public lane and the request's own namespace hold of the choice's tokens, in that order:
// keys follow from all tokens before, so the one's blocks continue the other's.
void LookForHits(SchedulerState& state, LiveRequest& live, std::uint32_t index, bool is_first,
                 Offer& offer) {
  if (live.needs_scores()) return;
  const Choice& choice = live.request->choice(index);
  const auto in_lane = state.public_lane.Match(live.request->tenant, choice.tokens, state.hits);
  std::size_t num_hits = in_lane.num_full;
  const NamespaceIndex* entries =
      ReadsCache(state, live) ? state.cache.FindNamespace(*live.request->cache_namespace) : nullptr;
  if (entries != nullptr) {
    live.request->ExtendKeys(entries->keyer(), index);
    num_hits = entries->Match(choice.keys, choice.tokens, state.hits, num_hits);
  }
  offer.num_hits = static_cast<std::int32_t>(num_hits);
  if (!is_first) return;
  if (num_hits == in_lane.num_full) {
    offer.copy_source = in_lane.copy_source;
    offer.copied_tokens = in_lane.copied_tokens;
  }
  if (entries != nullptr) LookForCopySource(state, choice, *entries, offer);
}

// The blocks of the prompt are the first choice's to bring. Others that have no token of their own
// yet, or whose prompt is not all in the cache, wait until it has.
Offer LookUp(SchedulerState& state, LiveRequest& live, std::uint32_t index, bool is_first) {
  const Choice& choice = live.request->choice(index);
  const std::int32_t num_shared = is_first ? 0 : live.request->prompt_length() / state.block_size();
  Offer offer;
  const bool has_own_tokens = choice.num_known() > live.request->prompt_length();
  if (is_first || has_own_tokens) LookForHits(state, live, index, is_first, offer);
  offer.waits_for_prompt = !is_first && (!has_own_tokens || offer.num_hits < num_shared);
  if (offer.waits_for_prompt) offer.num_hits = 0;
  for (std::int32_t i = num_shared; i < offer.num_hits; ++i) {
    offer.num_cached +=
        state.pool.state(state.hits[static_cast<std::size_t>(i)]) == BlockState::kCached;
  }
  offer.num_blocks =
      base::DivUp(TokensToHold(live, choice, state.block_size()), state.block_size()) -
      (offer.waits_for_prompt ? num_shared : offer.num_hits);
  return offer;
}

// Where the sequence starts to compute: behind what was found, but for the last token, which is
// computed again for its logits.
std::int32_t StartOf(const SchedulerState& state, const Choice& choice, const Offer& offer) {
  return std::min(offer.num_hits * state.block_size() + offer.copied_tokens,
                  choice.num_known() - 1);
}

bool IsAffordable(SchedulerState& state, LiveRequest& live, const StepBudget& budget) {
  if (state.running.size() + static_cast<std::size_t>(live.num_open) > state.slots.size()) {
    return false;
  }
  std::int32_t num_pinned = 0;
  bool is_first = true;
  for (std::uint32_t i = 0; i < live.request->num_choices(); ++i) {
    const Choice& choice = live.request->choice(i);
    if (!choice.is_open()) continue;
    const Offer offer = LookUp(state, live, i, is_first);
    num_pinned += offer.num_pinned();
    if (!std::exchange(is_first, false)) continue;
    const std::int32_t known = choice.num_known();
    if (known > state.history_room_tokens) return false;  // a fresh plan has room for any sequence
    const std::int32_t start = StartOf(state, choice, offer);
    if (FittingTokens({start, 0}, known - start, budget.tokens, state.block_size(), budget,
                      live.scored_rows()) <= 0) {
      return false;
    }
  }
  const base::TenantId tenant = live.request->tenant;
  return state.pool.CanTake(tenant, num_pinned) && state.pool.KeepsWatermark(tenant, num_pinned);
}

void OpenNamespace(SchedulerState& state, LiveRequest& live) {
  if (live.request->one_request_namespace) return;
  const NamespaceKey& key = *live.request->cache_namespace;
  const base::TenantId tenant = live.request->tenant;
  if (state.cache.NeedsRoom(tenant, key)) {
    state.pool.DropNamespace(state.cache.CloseableNamespace(tenant));
  }
  live.cache_namespace = &state.cache.Open(tenant, key);
}

// Hands out the blocks after the hits; the first of them takes the copy. The copy stands in the
// plan before the zeros of the other blocks, so a source that was evicted for one of them is still
// read whole. A source handed out as the copy's own target changes places with another block, or is
// not copied.
void TakeOwnBlocks(SchedulerState& state, Sequence& sequence, Offer& offer) {
  const auto count = static_cast<std::size_t>(offer.num_blocks);
  if (count == 0) return;
  PAGODA_CHECK_MSG(!offer.copy_source.has_value() ||
                       MayRead(state, state.RequestOf(sequence), *offer.copy_source),
                   "a copy would read another namespace's block");
  const std::span<BlockRef> refs = std::span(state.taken).first(count);
  PAGODA_CHECK(state.pool.TryAllocate(state.RequestOf(sequence).request->tenant, sequence.slot,
                                      state.draft.job(), refs));
  NoteOwner(state, state.RequestOf(sequence), refs);
  if (offer.copy_source == refs.front().id()) {
    if (count > 1) {
      std::swap(refs.front(), refs.back());
    } else {
      offer.copy_source.reset();
      offer.copied_tokens = 0;
    }
  }
  state.draft.AddZero(sequence.slot, refs.front().id());
  if (offer.copy_source.has_value()) {
    state.draft.AddCopy({.block = refs.front().id(),
                         .source = *offer.copy_source,
                         .num_slots = static_cast<std::uint32_t>(offer.copied_tokens),
                         .slot = sequence.slot});
  }
  for (BlockRef& ref : refs.subspan(1)) state.draft.AddZero(sequence.slot, ref.id());
  for (BlockRef& ref : refs) state.tables.Append(sequence.slot, std::move(ref));
  sequence.last_handed_job = state.draft.job();
  state.RequestOf(sequence).receipt.blocks_touched += offer.num_blocks;
}

// Takes what was found, before anything is handed out: a block that one choice holds is not evicted
// for another.
void TakeHits(SchedulerState& state, Sequence& sequence, const Offer& offer) {
  for (const base::BlockId hit :
       std::span(state.hits).first(static_cast<std::size_t>(offer.num_hits))) {
    state.tables.Append(sequence.slot, state.pool.Hold(hit, sequence.slot));
  }
  state.RequestOf(sequence).receipt.blocks_reused += offer.num_hits;
  sequence.waits_for_prompt = offer.waits_for_prompt;
  if (offer.waits_for_prompt) {
    state.tables.AppendHoles(sequence.slot, sequence.prompt_length / state.block_size());
    return;
  }
  sequence.num_sealed = offer.num_hits;
  sequence.num_computed = offer.num_hits * state.block_size();
  sequence.num_planned = StartOf(state, state.ChoiceOf(sequence), offer);
}

void CountAdmission(SchedulerState& state, RequestIndex index, const Sequence& first) {
  LiveRequest& live = state.requests[index];
  Receipt& receipt = live.receipt;
  receipt.blocks_peak = std::max<std::int64_t>(receipt.blocks_peak, BlocksHeld(state, live));
  if (std::exchange(live.was_admitted, true)) return;
  live.admitted_at = state.planning_at;
  receipt.prompt_tokens = live.request->prompt_length();
  receipt.cached_tokens = first.num_planned;
  receipt.queue_steps = state.num_steps - live.added_at_step;
  state.counters.prompt_tokens += receipt.prompt_tokens;
  ++state.TenantOf(live).counts.num_admitted;
  state.TenantOf(live).counts.prompt_tokens += receipt.prompt_tokens;
  state.counters.cached_tokens += receipt.cached_tokens;
  state.QueueOf(live).CountOvertakes(index);
}

}  // namespace

bool CanAdmit(SchedulerState& state, RequestIndex index, const StepBudget& budget) {
  return IsAffordable(state, state.requests[index], budget);
}

bool TryAdmit(SchedulerState& state, RequestIndex index, const StepBudget& budget) {
  LiveRequest& live = state.requests[index];
  if (!IsAffordable(state, live, budget)) return false;

  // From here on nothing is refused.
  state.QueueOf(live).Remove(index);
  StartRunning(state, index);
  OpenNamespace(state, live);
  const Choice& first = live.first_open();
  Offer first_offer;
  for (std::uint32_t i = 0; i < live.request->num_choices(); ++i) {
    const Choice& choice = live.request->choice(i);
    if (!choice.is_open()) continue;
    const Offer offer = LookUp(state, live, i, &choice == &first);
    TakeHits(state, state.SequenceIn(*choice.slot), offer);
    if (&choice == &first) first_offer = offer;
  }
  Sequence& first_sequence = state.SequenceIn(*first.slot);
  TakeOwnBlocks(state, first_sequence, first_offer);
  first_sequence.num_planned = StartOf(state, first, first_offer);
  for (const Choice& choice : live.request->choices()) {
    if (!choice.is_open() || &choice == &first) continue;
    Sequence& sequence = state.SequenceIn(*choice.slot);
    // Without a copy: what it would read may be evicted for those before it.
    Offer offer;
    offer.num_blocks =
        base::DivUp(TokensToHold(live, choice, state.block_size()), state.block_size()) -
        state.tables.size(sequence.slot);
    TakeOwnBlocks(state, sequence, offer);
  }
  CountAdmission(state, index, first_sequence);
  return true;
}

}  // namespace pagoda::scheduler
