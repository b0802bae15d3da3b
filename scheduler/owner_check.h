#pragma once

#include "scheduler/scheduler_state.h"
#include "scheduler/step_plan.h"

namespace pagoda::scheduler {

// The last line between two namespaces: a record of whose content each block holds, kept apart from
// pool and index and written at hand-out only, against which block tables are held before they
// reach the device. A violation is our bug and aborts the process.

BlockOwner OwnerOf(const LiveRequest& live);
// Blocks are on their way to a table of `live`.
void NoteOwner(SchedulerState& state, const LiveRequest& live, std::span<const BlockRef> blocks);
// Whether the request may read what the block holds.
bool MayRead(const SchedulerState& state, const LiveRequest& live, base::BlockId block);
// Every entry of a table is looked at once in so many plans (577 us for all entries of 1,024
// sequences x 256 blocks at each step were too much).
#ifdef PAGODA_TEST_CHECKS
inline constexpr std::int32_t kOwnerCheckStride = 1;
#else
inline constexpr std::int32_t kOwnerCheckStride = 64;
#endif
// Checks every table entry that the plan adds or replaces, and every `stride`-th of all others,
// beginning one further in each plan, and in each slot, so that plans have equal shares of them.
void CheckOwners(const SchedulerState& state, const StepPlan& plan,
                 std::int32_t stride = kOwnerCheckStride);

}  // namespace pagoda::scheduler
