#include "scheduler/owner_check.h"

#include "base/check.h"

namespace pagoda::scheduler {
namespace {

// Namespaces by their places, which are not reused while one of their blocks is held; requests with
// a namespace of their own by their ids.
BlockOwner OwnerOf(const LiveRequest& live) {
  constexpr std::uint64_t kOneRequest = std::uint64_t{1} << 63;
  if (live.cache_namespace == nullptr) return BlockOwner(kOneRequest | live.request->id.value());
  return BlockOwner(live.cache_namespace->place());
}

void CheckEntry(const SchedulerState& state, base::SlotId slot, base::BlockId block) {
  PAGODA_CHECK_MSG(MayRead(state, state.RequestOf(state.SequenceIn(slot)), block),
                   "a block table names another namespace's block");
  const BlockState block_state = state.pool.state(block);
  PAGODA_CHECK_MSG(IsReadOnly(block_state) || state.pool.IsOwnedBy(block, slot),
                   "a block table names a block that is not its sequence's");
}

}  // namespace

void NoteOwner(SchedulerState& state, const LiveRequest& live, std::span<const BlockRef> blocks) {
  for (const BlockRef& block : blocks) state.block_owners[block.id().value()] = OwnerOf(live);
}

bool MayRead(const SchedulerState& state, const LiveRequest& live, base::BlockId block) {
  return state.block_owners[block.value()] == OwnerOf(live) ||
         state.public_lane.MayRead(live.request->tenant, block);
}

void CheckOwners(const SchedulerState& state, const StepPlan& plan, std::int32_t stride) {
  for (const WorkItem& item : plan.work) {
    const Range range = item.appended_blocks;
    for (std::uint32_t i = range.begin; i < range.begin + range.count; ++i) {
      CheckEntry(state, item.slot, plan.block_appends[i].block);
    }
  }
  const auto first = static_cast<std::int32_t>(state.num_steps % stride);
  for (const base::SlotId slot : state.running) {
    for (std::int32_t i = first; i < state.tables.size(slot); i += stride) {
      const base::BlockId block = state.tables.at(slot, i);
      if (block != base::kNullBlock) CheckEntry(state, slot, block);
    }
  }
}

}  // namespace pagoda::scheduler
