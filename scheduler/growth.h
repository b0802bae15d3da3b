#pragma once

#include <cstdint>

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// Gives a running sequence the blocks for its first `num_tokens` tokens. Wound-wait by age:
// preempts younger requests if need be, paused ones first, and never an older one that is not
// paused, nor its own. False: it stalls this step and keeps its blocks.
bool Grow(SchedulerState& state, const Sequence& sequence, std::int32_t num_tokens);

// Hands blocks out to a running sequence, appended to its table and zeroed by this plan. Requires:
// the pool allows it.
void TakeBlocks(SchedulerState& state, base::SlotId slot, std::int32_t count);

}  // namespace pagoda::scheduler
