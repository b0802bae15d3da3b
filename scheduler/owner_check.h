#pragma once

#include "scheduler/scheduler_state.h"
#include "scheduler/step_plan.h"

namespace pagoda::scheduler {

// The last line between two namespaces: a record of whose content each block holds, kept apart from
// pool and index and written at hand-out only, against which block tables are held before they
// reach the device. A violation is our bug and aborts the process.

// Blocks are on their way to a table of `live`.
void NoteOwner(SchedulerState& state, const LiveRequest& live, std::span<const BlockRef> blocks);
// Whether the request may read what the block holds.
bool MayRead(const SchedulerState& state, const LiveRequest& live, base::BlockId block);
// Checks every table entry that the plan adds or replaces, and every 64th of all others, another
// 64th in each plan; in test builds all of them.
void CheckOwners(const SchedulerState& state, const StepPlan& plan);

}  // namespace pagoda::scheduler
