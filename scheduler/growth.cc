#include "scheduler/growth.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/lifecycle.h"
#include "scheduler/mutants.h"
#include "scheduler/owner_check.h"

namespace pagoda::scheduler {
namespace {

// What a request would have to compute again.
std::int32_t WorkOf(const SchedulerState& state, const LiveRequest& live) {
  std::int32_t tokens = 0;
  for (const Choice& choice : live.request->choices()) {
    if (choice.slot.has_value()) tokens += state.SequenceIn(*choice.slot).num_planned;
  }
  return tokens;
}

// The progress of a tenant's oldest is its tenant's reserve's to pay for, if that suffices.
bool IsKeptByItsReserve(const SchedulerState& state, RequestIndex index) {
  const LiveRequest& live = state.requests[index];
  const Tenant& tenant = state.TenantOf(live);
  return tenant.oldest == index && !PAGODA_MUTANT(kTakesATenantsOldest) &&
         live.request->WorstCaseBlocks(state.block_size()) <= tenant.config.reserve_blocks;
}

// To another tenant's growth: what is taken must be above the loser's reserve, and of use. Then the
// loser's tenant has others to lose than the one that its reserve keeps.
bool MayLose(const SchedulerState& state, RequestIndex loser, const LiveRequest& taker) {
  const base::TenantId tenant = state.requests[loser].request->tenant;
  return state.TenantOf(taker).is_elastic() &&
         (PAGODA_MUTANT(kTakesWithinReserve) || state.pool.IsOverReserve(tenant)) &&
         !IsKeptByItsReserve(state, loser);
}

// A paused one first, whatever its age; else the younger one that loses the least work.
std::optional<RequestIndex> ChooseVictim(const SchedulerState& state, RequestIndex requester) {
  const LiveRequest& taker = state.requests[requester];
  std::optional<RequestIndex> victim;
  const auto rank = [&](RequestIndex index) {
    const LiveRequest& live = state.requests[index];
    const std::int32_t work = WorkOf(state, live);
    return std::tuple(!live.paused, PAGODA_MUTANT(kMostWorkLost) ? -work : work,
                      ~live.request->id.value());
  };
  std::optional<RequestIndex> seen;
  for (const base::SlotId slot : state.running) {
    const RequestIndex index = state.SequenceIn(slot).request;
    if (index == requester || seen == index) continue;
    if (PAGODA_MUTANT(kPausedIsSafe) && state.requests[index].paused) continue;
    seen = index;
    const LiveRequest& live = state.requests[index];
    const bool is_older = live.request->id < taker.request->id;
    if (!live.paused && is_older && !PAGODA_MUTANT(kTakesFromOlder)) continue;
    if (live.request->tenant != taker.request->tenant && !MayLose(state, index, taker)) continue;
    if (!victim.has_value() || rank(index) < rank(*victim)) victim = index;
  }
  return victim;
}

}  // namespace

bool Grow(SchedulerState& state, Sequence& sequence, std::int32_t num_tokens) {
  const std::int32_t has = state.tables.size(sequence.slot);
  if (num_tokens <= has * state.block_size()) return true;
  const std::int32_t need = base::DivUp(num_tokens, state.block_size()) - has;
  const LiveRequest& live = state.RequestOf(sequence);
  const base::TenantId tenant = sequence.tenant;
  while (!state.pool.CanTake(tenant, need)) {
    if (state.pool.CanTakeSoon(tenant, need)) {
      sequence.waited_in = state.draft.job();
      return false;
    }
    const auto victim = ChooseVictim(state, sequence.request);
    if (!victim.has_value()) return false;
    const LiveRequest& loser = state.requests[*victim];
    PAGODA_CHECK_MSG(loser.request->tenant == tenant || MayLose(state, *victim, live),
                     "E3: a victim is kept by its tenant's reserve");
    PAGODA_CHECK_MSG(loser.paused || loser.request->id > live.request->id,
                     "E4: a victim for blocks is older than the requester");
    Preempt(state, *victim);
  }
  TakeBlocks(state, sequence.slot, need);
  return true;
}

void TakeBlocks(SchedulerState& state, base::SlotId slot, std::int32_t count) {
  Sequence& sequence = state.SequenceIn(slot);
  LiveRequest& live = state.RequestOf(sequence);
  const std::span<BlockRef> refs = std::span(state.taken).first(static_cast<std::size_t>(count));
  const bool allowed = state.pool.TryAllocate(live.request->tenant, slot, state.draft.job(), refs);
  PAGODA_CHECK(allowed);
  NoteOwner(state, live, refs);
  for (BlockRef& ref : refs) {
    if (!PAGODA_MUTANT(kHandOutNotZeroed)) state.draft.AddZero(slot, ref.id());
    state.tables.Append(slot, std::move(ref));
  }
  if (count > 0) sequence.last_handed_job = state.draft.job();
  CountHandedOut(state, live, count);
  Receipt& receipt = live.receipt;
  receipt.blocks_peak = std::max<std::int64_t>(receipt.blocks_peak, BlocksHeld(state, live));
}

// What a plan hands out stays pinned until its fence, so no tenant's zeros are more than it can
// hold, and the plan's list has room for all of them.
void CountHandedOut(SchedulerState& state, LiveRequest& live, std::int32_t count) {
  live.receipt.blocks_touched += count;
  Tenant& tenant = state.TenantOf(live);
  tenant.num_handed_out += count;
  PAGODA_CHECK_MSG(tenant.num_handed_out <= state.pool.Capacity(live.request->tenant),
                   "a plan hands out more to a tenant than it can hold");
}

}  // namespace pagoda::scheduler
