#include "scheduler/owner_check.h"

#include <bit>

#include "base/check.h"

namespace pagoda::scheduler {
namespace {

bool MayRead(const SchedulerState& state, BlockOwner owner, base::TenantId tenant,
             base::BlockId block) {
  return state.block_owners[block.value()] == owner || state.public_lane.MayRead(tenant, block);
}

void CheckEntry(const SchedulerState& state, const Sequence& sequence, base::BlockId block) {
  PAGODA_CHECK_MSG(MayRead(state, sequence.owner, sequence.tenant, block),
                   "a block table names another namespace's block");
  const BlockState block_state = state.pool.state(block);
  PAGODA_CHECK_MSG(IsReadOnly(block_state) || state.pool.IsOwnedBy(block, sequence.slot),
                   "a block table names a block that is not its sequence's");
}

// A rotating part of each table.
std::int32_t FirstToCheck(const SchedulerState& state, base::SlotId slot, std::int32_t stride) {
  const std::int64_t turn = state.num_steps + slot.value();
  return static_cast<std::int32_t>(turn) & (stride - 1);
}

// What the check of slots to come will look at.
void FetchAhead(const SchedulerState& state, std::uint32_t slot, std::int32_t stride) {
  constexpr std::uint32_t kEntry = 16, kBlock = 8;  // slots ahead
  if (slot + kEntry < state.slots.size()) {
    const base::SlotId next(slot + kEntry);
    const std::int32_t first = FirstToCheck(state, next, stride);
    if (first < state.tables.size(next)) state.tables.Fetch(next, first);
  }
  if (slot + kBlock >= state.slots.size()) return;
  const base::SlotId next(slot + kBlock);
  const std::int32_t first = FirstToCheck(state, next, stride);
  if (first >= state.tables.size(next)) return;
  const base::BlockId block = state.tables.at(next, first);
  state.pool.Fetch(block);
  __builtin_prefetch(&state.block_owners[block.value()]);
}

}  // namespace

// Namespaces by their places, which are not reused while one of their blocks is held; requests with
// a namespace of their own by their ids.
BlockOwner OwnerOf(const LiveRequest& live) {
  constexpr std::uint64_t kOneRequest = std::uint64_t{1} << 63;
  if (live.cache_namespace == nullptr) return BlockOwner(kOneRequest | live.request->id.value());
  return BlockOwner(live.cache_namespace->place());
}

void NoteOwner(SchedulerState& state, const LiveRequest& live, std::span<const BlockRef> blocks) {
  for (const BlockRef& block : blocks) state.block_owners[block.id().value()] = OwnerOf(live);
}

bool MayRead(const SchedulerState& state, const LiveRequest& live, base::BlockId block) {
  return MayRead(state, OwnerOf(live), live.request->tenant, block);
}

void CheckOwners(const SchedulerState& state, const StepPlan& plan, std::int32_t stride) {
  for (const WorkItem& item : plan.work) {
    const Range range = item.appended_blocks;
    for (std::uint32_t i = range.begin; i < range.begin + range.count; ++i) {
      CheckEntry(state, state.SequenceIn(item.slot), plan.block_appends[i].block);
    }
  }
  PAGODA_CHECK(std::has_single_bit(static_cast<std::uint32_t>(stride)));
  const auto num_slots = static_cast<std::uint32_t>(state.slots.size());
  for (std::uint32_t s = 0; s < num_slots; ++s) {
    FetchAhead(state, s, stride);
    const base::SlotId slot(s);
    if (!state.IsRunning(slot)) continue;
    for (std::int32_t i = FirstToCheck(state, slot, stride); i < state.tables.size(slot);
         i += stride) {
      const base::BlockId block = state.tables.at(slot, i);
      if (block != base::kNullBlock) CheckEntry(state, state.SequenceIn(slot), block);
    }
  }
}

}  // namespace pagoda::scheduler
