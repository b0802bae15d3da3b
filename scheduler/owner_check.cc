#include "scheduler/owner_check.h"

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
  for (const base::SlotId slot : state.running) {
    const auto first = static_cast<std::int32_t>((state.num_steps + slot.value()) % stride);
    for (std::int32_t i = first; i < state.tables.size(slot); i += stride) {
      const base::BlockId block = state.tables.at(slot, i);
      if (block != base::kNullBlock) CheckEntry(state, state.SequenceIn(slot), block);
    }
  }
}

}  // namespace pagoda::scheduler
