// An admission looks first (Offer, nothing changes), decides for all choices together, and only
// then takes.
#include "scheduler/admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/fair_counters.h"
#include "scheduler/growth.h"
#include "scheduler/lifecycle.h"
#include "scheduler/mutants.h"
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

  std::int32_t num_pinned() const {
    return num_blocks + (PAGODA_MUTANT(kCachedHitsAreFree) ? 0 : num_cached);
  }
};

// Blocks are taken for all known tokens; after the third preemption also for some of what is still
// to come, so that it does not only come to be preempted again.
std::int32_t TokensToHold(const LiveRequest& live, const Choice& choice, std::int32_t block_size) {
  const std::int32_t known = choice.num_known();
  const bool reserves = !PAGODA_MUTANT(kNoReserveAfterPreemptions);
  if (!reserves || live.receipt.preemptions < kPreemptionsBeforeReserve) return known;
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
    offer.copied_tokens = length + PAGODA_MUTANT(kCopiesATokenMore);
    offer.copy_source = *child;
  }
}

// What the public lane and the request's own namespace hold of the choice's tokens, in that order:
// keys follow from all tokens before, so the one's blocks continue the other's. A prefix of the
// lane finds nothing: its blocks must be its own to give.
void LookForHits(SchedulerState& state, LiveRequest& live, std::uint32_t index, bool is_first,
                 Offer& offer) {
  if (live.computes_all() || live.is_public_prefix) return;
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
                  choice.num_known() - 1 + PAGODA_MUTANT(kFullHitComputesNothing));
}

const StepBudget& BudgetOf(const SchedulerState& state, const Tenant& tenant, Purse purse) {
  return purse == Purse::kFloor ? tenant.floor_left : state.left;
}

bool MayHaveSlots(const SchedulerState& state, const LiveRequest& live, Purse purse) {
  const Tenant& tenant = state.TenantOf(live);
  if (IsAtItsLimit(tenant) && !PAGODA_MUTANT(kNoLimitOfRunning)) return false;
  if (purse == Purse::kFloor) {
    return tenant.num_slots + live.num_open <=
           tenant.floors.slots + PAGODA_MUTANT(kSlotsBeyondFloor);
  }
  return live.num_open <= state.num_free_slots();
}

// Blocks that the admission would pin. `first`, unless null, is told the offer to the first open
// choice.
std::int32_t NeedOf(SchedulerState& state, LiveRequest& live, Offer* first = nullptr) {
  std::int32_t num_pinned = 0;
  bool is_first = true;
  for (std::uint32_t i = 0; i < live.request->num_choices(); ++i) {
    if (!live.request->choice(i).is_open()) continue;
    const Offer offer = LookUp(state, live, i, is_first);
    num_pinned += offer.num_pinned();
    if (std::exchange(is_first, false) && first != nullptr) *first = offer;
  }
  return num_pinned;
}

bool FitsStep(const SchedulerState& state, const LiveRequest& live, const Offer& offer,
              Purse purse) {
  const Choice& choice = live.first_open();
  const Tenant& tenant = state.TenantOf(live);
  const StepBudget& budget = BudgetOf(state, tenant, purse);
  const std::int32_t known = choice.num_known();
  // A fresh plan has room for any sequence.
  if (known > tenant.history_room_tokens) return false;
  const std::int32_t start = StartOf(state, choice, offer);
  return FittingTokens({start, 0}, known - start, state.block_size(), budget, live.scored_rows()) >
         0;
}

// New shares come into force once what is held fits them, so what would not fit them waits; but for
// a request that could never run under them, and whose end they wait for.
bool DelaysNewShares(const SchedulerState& state, const LiveRequest& live, std::int32_t need) {
  if (state.pending_tenants.empty()) return false;
  const base::TenantId tenant = live.request->tenant;
  const std::int32_t capacity = CapacityOf(state.pool.num_usable(), state.pending_tenants, tenant);
  if (live.request->WorstCaseBlocks(state.block_size()) > capacity) return false;
  const std::int32_t pinned = state.pool.num_pinned(tenant) + need;
  if (pinned <= state.pending_shares[tenant.value()].reserve_blocks) return false;
  return !state.pool.FitsShares(state.pending_shares, tenant, need);
}

Admission JudgeBlocks(const SchedulerState& state, const LiveRequest& live, std::int32_t need,
                      base::RequestId barrier) {
  const base::TenantId tenant = live.request->tenant;
  const TenantConfig& config = state.TenantOf(live).config;
  if (!state.pool.CanTake(tenant, need)) {
    return config.isolated ? Admission::kRefused : Admission::kRefusedForCommon;
  }
  // Never of an isolated tenant.
  const bool draws_on_common = state.pool.num_pinned(tenant) + need > config.reserve_blocks;
  const bool is_held = barrier < live.request->id && !PAGODA_MUTANT(kNoBarrierHolds);
  if (draws_on_common && is_held) return Admission::kRefused;
  if (!state.pool.KeepsWatermark(tenant, need)) return Admission::kRefusedForCommon;
  return DelaysNewShares(state, live, need) ? Admission::kRefused : Admission::kGiven;
}

// The youngest request of all tenants that have more slots than their floor. As a request has no
// more choices than its tenant's floor has slots, it is never the tenant's only one.
RequestIndex ChooseSlotVictim(const SchedulerState& state) {
  for (std::size_t i = state.running.size(); i-- > 0;) {
    const std::size_t from_old = state.running.size() - 1 - i;
    const bool inverts = PAGODA_MUTANT(kOldestSlotVictim);
    const Sequence& sequence = state.SequenceIn(state.running[inverts ? from_old : i]);
    const Tenant& tenant = state.TenantOf(sequence);
    if (tenant.num_slots > tenant.floors.slots) return sequence.request;
  }
  PAGODA_CHECK_MSG(false, "a tenant below its floor finds no slot and nobody above theirs");
  return Slot::kNobody;
}

void TakeSlots(SchedulerState& state, const LiveRequest& taker) {
  while (state.num_free_slots() < taker.num_open) {
    const RequestIndex victim = ChooseSlotVictim(state);
    const Tenant& loser = state.TenantOf(state.requests[victim]);
    PAGODA_CHECK_MSG(&loser != &state.TenantOf(taker), "E3: a slot is taken from its own tenant");
    PAGODA_CHECK_MSG(loser.num_slots > loser.floors.slots,
                     "E3: a slot victim's tenant is within its floor");
    PAGODA_CHECK_MSG(loser.num_running > 1, "E4: a slot victim is its tenant's only request");
    ++state.tenants[state.requests[victim].request->tenant.value()].counts.num_slot_victims;
    Preempt(state, victim);
  }
}

void OpenNamespace(SchedulerState& state, LiveRequest& live) {
  if (live.request->one_request_namespace) return;
  const NamespaceKey& key = *live.request->cache_namespace;
  const base::TenantId tenant = live.request->tenant;
  if (state.cache.NeedsRoom(tenant, key)) {
    state.pool.DropNamespace(state.cache.CloseableNamespace(tenant));
  }
  live.cache_namespace = &state.cache.Open(tenant, key);
  for (const Choice& choice : live.request->choices()) {
    if (choice.slot.has_value()) state.SequenceIn(*choice.slot).owner = OwnerOf(live);
  }
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
  if (offer.copy_source == refs.front().id() && !PAGODA_MUTANT(kCopiesIntoItself)) {
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
  CountHandedOut(state, state.RequestOf(sequence), offer.num_blocks);
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
  Tenant& tenant = state.TenantOf(live);
  ++tenant.counts.num_admitted;
  tenant.counts.prompt_tokens += receipt.prompt_tokens;
  --tenant.num_new;
  Charge(tenant, kChargeOfPromptToken * receipt.prompt_tokens);
  state.counters.cached_tokens += receipt.cached_tokens;
  state.QueueOf(live).CountOvertakes(index);
}

}  // namespace

std::int32_t NeedOfHead(SchedulerState& state, base::TenantId id, RequestIndex head) {
  Tenant& tenant = state.tenants[id.value()];
  if (tenant.judged_head != head) {
    tenant.judged_head = head;
    tenant.head_need_blocks = NeedOf(state, state.requests[head]);
  }
  return tenant.head_need_blocks;
}

void RaiseBarrier(SchedulerState& state) {
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    const auto head = state.queues[t].Head();
    if (!head.has_value() || !state.tenants[t].is_elastic()) continue;
    const LiveRequest& live = state.requests[*head];
    if (live.request->id >= state.barrier) continue;
    if (!MayHaveSlots(state, live, Purse::kFloor) && !MayHaveSlots(state, live, Purse::kRest)) {
      continue;
    }
    const std::int32_t need = NeedOfHead(state, base::TenantId(t), *head);
    if (JudgeBlocks(state, live, need, kNoBarrier) == Admission::kRefusedForCommon) {
      state.barrier = live.request->id;
    }
  }
}

Admission Judge(SchedulerState& state, RequestIndex index, Purse purse) {
  LiveRequest& live = state.requests[index];
  PAGODA_CHECK(purse == Purse::kFloor || state.TenantOf(live).is_elastic());
  if (!MayHaveSlots(state, live, purse)) return Admission::kRefused;
  if (BudgetOf(state, state.TenantOf(live), purse).tokens <= 0) return Admission::kRefused;
  // The head's need is asked for once in a plan: a refusal by it costs no second look.
  const std::int32_t known_need = NeedOfHead(state, live.request->tenant, index);
  const Admission at_first = JudgeBlocks(state, live, known_need, state.barrier);
  if (at_first != Admission::kGiven) return at_first;
  Offer first;
  const std::int32_t need = NeedOf(state, live, &first);
  if (!FitsStep(state, live, first, purse)) return Admission::kRefused;
  return JudgeBlocks(state, live, need, state.barrier);
}

Admission TryAdmit(SchedulerState& state, RequestIndex index, Purse purse) {
  LiveRequest& live = state.requests[index];
  const Admission judged = Judge(state, index, purse);
  if (judged != Admission::kGiven) return judged;

  // From here on nothing is refused. Slots come last: what they cost is not paid in vain.
  TakeSlots(state, live);
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
  return Admission::kGiven;
}

}  // namespace pagoda::scheduler
