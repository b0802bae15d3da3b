// An admission looks first (Offer, nothing changes), decides, and only then takes.
#include "scheduler/admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/growth.h"
#include "scheduler/lifecycle.h"

namespace pagoda::scheduler {
namespace {

// Children of the matched parent that are looked at for the best partial match.
constexpr int kMaxCopyCandidates = 4;

// What the cache and the pool have for a waiting request.
struct Offer {
  std::int32_t num_hits = 0;    // full blocks, in state.hits
  std::int32_t num_cached = 0;  // of them, held by nobody yet
  std::int32_t num_blocks = 0;  // to hand out
  std::optional<base::BlockId> copy_source;
  std::int32_t copied_tokens = 0;

  std::int32_t num_pinned() const { return num_blocks + num_cached; }
};

// Blocks are taken for all known tokens; after the third preemption also for some of what is still
// to come, so that it does not only come to be preempted again.
std::int32_t TokensToHold(const Sequence& sequence, std::int32_t block_size) {
  const std::int32_t known = sequence.num_known();
  if (sequence.receipt.preemptions < kPreemptionsBeforeReserve) return known;
  const std::int32_t generated = known - sequence.request->prompt_length();
  const std::int32_t remaining = sequence.max_length() - known;
  const std::int32_t wanted = known + std::min(remaining, std::max(4 * block_size, generated));
  return std::max(known, std::min(wanted, sequence.max_length() - 1));
}

// The longest match with the next block's tokens among the newest children. At least one token
// stays to be computed.
void LookForCopySource(const SchedulerState& state, const Sequence& sequence,
                       const NamespaceIndex& index, Offer& offer) {
  const std::int32_t first = offer.num_hits * state.block_size();
  const auto tokens = std::span<const base::TokenId>(sequence.request->tokens())
                          .subspan(static_cast<std::size_t>(first));
  if (tokens.size() < 2) return;
  const BlockKey& parent =
      offer.num_hits == 0 ? index.keyer().root()
                          : sequence.request->keys()[static_cast<std::size_t>(offer.num_hits) - 1];
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

Offer LookUp(SchedulerState& state, Sequence& sequence) {
  Offer offer;
  const NamespaceIndex* index = UsesCache(state, sequence)
                                    ? state.cache.FindNamespace(*sequence.request->cache_namespace)
                                    : nullptr;
  if (index != nullptr) {
    sequence.request->ExtendKeys(index->keyer());
    offer.num_hits = static_cast<std::int32_t>(
        index->Match(sequence.request->keys(), sequence.request->tokens(), state.hits));
    for (std::int32_t i = 0; i < offer.num_hits; ++i) {
      offer.num_cached +=
          state.pool.state(state.hits[static_cast<std::size_t>(i)]) == BlockState::kCached;
    }
    LookForCopySource(state, sequence, *index, offer);
  }
  offer.num_blocks =
      base::DivUp(TokensToHold(sequence, state.block_size()), state.block_size()) - offer.num_hits;
  return offer;
}

bool IsAffordable(const SchedulerState& state, const Sequence& sequence, const Offer& offer,
                  const StepBudget& budget) {
  if (state.running.size() >= state.slots.size()) return false;
  const std::int32_t known = sequence.num_known();
  if (known > state.history_room_tokens) return false;  // a fresh plan has room for any request
  const std::int32_t start =
      std::min(offer.num_hits * state.block_size() + offer.copied_tokens, known - 1);
  if (FittingTokens({start, 0}, known - start, budget.tokens, state.block_size(), budget) <= 0) {
    return false;
  }
  const base::TenantId tenant = sequence.request->tenant;
  return state.pool.CanTake(tenant, offer.num_pinned()) &&
         state.pool.KeepsWatermark(tenant, offer.num_pinned());
}

void OpenNamespace(SchedulerState& state, Sequence& sequence) {
  if (sequence.request->one_request_namespace) return;
  const NamespaceKey& key = *sequence.request->cache_namespace;
  if (state.cache.NeedsRoom(key)) state.pool.DropEntries(state.cache.CloseableNamespace());
  sequence.cache_namespace = &state.cache.Open(key);
}

// Hands out the blocks after the hits; the first of them takes the copy. The copy stands in the
// plan before the zeros of the other blocks, so a source that was evicted for one of them is still
// read whole. A source handed out as the copy's own target changes places with another block, or is
// not copied.
void TakeOwnBlocks(SchedulerState& state, SequenceIndex index, Offer& offer) {
  Sequence& sequence = state.sequences[index];
  const auto count = static_cast<std::size_t>(offer.num_blocks);
  if (count == 0) return;
  const std::span<BlockRef> refs = std::span(state.taken).first(count);
  PAGODA_CHECK(
      state.pool.TryAllocate(sequence.request->tenant, sequence.slot, state.draft.job(), refs));
  if (offer.copy_source == refs.front().id()) {
    if (count > 1) {
      std::swap(refs.front(), refs.back());
    } else {
      offer.copy_source.reset();
      offer.copied_tokens = 0;
    }
  }
  state.draft.AddZero(index, refs.front().id());
  if (offer.copy_source.has_value()) {
    state.draft.AddCopy({.block = refs.front().id(),
                         .source = *offer.copy_source,
                         .num_slots = static_cast<std::uint32_t>(offer.copied_tokens),
                         .sequence = index});
  }
  for (BlockRef& ref : refs.subspan(1)) state.draft.AddZero(index, ref.id());
  for (BlockRef& ref : refs) state.tables.Append(sequence.slot, std::move(ref));
  sequence.last_handed_job = state.draft.job();
}

void CountAdmission(SchedulerState& state, SequenceIndex index, const Offer& offer) {
  Sequence& sequence = state.sequences[index];
  Receipt& receipt = sequence.receipt;
  receipt.blocks_touched += offer.num_blocks;
  receipt.blocks_reused += offer.num_hits;
  receipt.blocks_peak =
      std::max<std::int64_t>(receipt.blocks_peak, state.tables.size(sequence.slot));
  if (std::exchange(sequence.was_admitted, true)) return;
  receipt.prompt_tokens = sequence.request->prompt_length();
  receipt.cached_tokens = sequence.num_planned;
  receipt.queue_steps = state.num_steps - sequence.added_at_step;
  state.counters.prompt_tokens += receipt.prompt_tokens;
  state.counters.cached_tokens += receipt.cached_tokens;
  state.QueueOf(sequence).CountOvertakes(index);
}

}  // namespace

bool CanAdmit(SchedulerState& state, SequenceIndex index, const StepBudget& budget) {
  Sequence& sequence = state.sequences[index];
  return IsAffordable(state, sequence, LookUp(state, sequence), budget);
}

bool TryAdmit(SchedulerState& state, SequenceIndex index, const StepBudget& budget) {
  Sequence& sequence = state.sequences[index];
  Offer offer = LookUp(state, sequence);
  if (!IsAffordable(state, sequence, offer, budget)) return false;

  // From here on nothing is refused.
  state.QueueOf(sequence).Remove(index);
  StartRunning(state, index);
  OpenNamespace(state, sequence);
  for (const base::BlockId hit :
       std::span(state.hits).first(static_cast<std::size_t>(offer.num_hits))) {
    state.tables.Append(sequence.slot, state.pool.Hold(hit, sequence.slot));
  }
  TakeOwnBlocks(state, index, offer);
  const std::int32_t known = sequence.num_known();
  sequence.num_sealed = offer.num_hits;
  sequence.num_computed = offer.num_hits * state.block_size();
  // With everything found, the last token is computed again for its logits, and written nowhere.
  sequence.num_planned = std::min(sequence.num_computed + offer.copied_tokens, known - 1);
  state.history_room_tokens -= known;
  state.table_room_entries -= std::min(state.tables.size(sequence.slot), state.table_room_entries);
  CountAdmission(state, index, offer);
  return true;
}

}  // namespace pagoda::scheduler
