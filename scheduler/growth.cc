#include "scheduler/growth.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/lifecycle.h"

namespace pagoda::scheduler {
namespace {

// A paused one first, whatever its age; else the younger one that loses the least work.
std::optional<SequenceIndex> ChooseVictim(const SchedulerState& state, SequenceIndex requester) {
  const Sequence& taker = state.sequences[requester];
  std::optional<SequenceIndex> victim;
  const auto rank = [&](SequenceIndex index) {
    const Sequence& sequence = state.sequences[index];
    return std::tuple(!sequence.paused, sequence.num_planned, ~sequence.request->id.value());
  };
  for (const SequenceIndex index : state.running) {
    const Sequence& sequence = state.sequences[index];
    if (index == requester) continue;
    if (!sequence.paused && sequence.request->id < taker.request->id) continue;
    const bool is_foreign = sequence.request->tenant != taker.request->tenant;
    if (is_foreign && !state.pool.IsOverReserve(sequence.request->tenant)) continue;
    if (!victim.has_value() || rank(index) < rank(*victim)) victim = index;
  }
  return victim;
}

}  // namespace

bool Grow(SchedulerState& state, SequenceIndex index, std::int32_t num_tokens) {
  const Sequence& sequence = state.sequences[index];
  const base::TenantId tenant = sequence.request->tenant;
  const std::int32_t need =
      base::DivUp(num_tokens, state.block_size()) - state.tables.size(sequence.slot);
  if (need <= 0) return true;
  while (!state.pool.CanTake(tenant, need)) {
    if (state.pool.CanTakeSoon(tenant, need)) return false;
    const auto victim = ChooseVictim(state, index);
    if (!victim.has_value()) return false;
    const Sequence& loser = state.sequences[*victim];
    PAGODA_CHECK_MSG(
        loser.request->tenant == tenant || state.pool.IsOverReserve(loser.request->tenant),
        "E3: a victim's tenant is within its reserve");
    PAGODA_CHECK_MSG(loser.paused || loser.request->id > sequence.request->id,
                     "E4: a victim for blocks is older than the requester");
    Preempt(state, *victim);
  }
  TakeBlocks(state, index, need);
  return true;
}

void TakeBlocks(SchedulerState& state, SequenceIndex index, std::int32_t count) {
  Sequence& sequence = state.sequences[index];
  const std::span<BlockRef> refs = std::span(state.taken).first(static_cast<std::size_t>(count));
  const bool allowed =
      state.pool.TryAllocate(sequence.request->tenant, sequence.slot, state.draft.job(), refs);
  PAGODA_CHECK(allowed);
  for (BlockRef& ref : refs) {
    state.draft.AddZero(index, ref.id());
    state.tables.Append(sequence.slot, std::move(ref));
  }
  if (count > 0) sequence.last_handed_job = state.draft.job();
  Receipt& receipt = sequence.receipt;
  receipt.blocks_touched += count;
  receipt.blocks_peak =
      std::max<std::int64_t>(receipt.blocks_peak, state.tables.size(sequence.slot));
}

}  // namespace pagoda::scheduler
