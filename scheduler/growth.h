#pragma once

#include <cstdint>

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// Gives a running sequence the blocks for its first `num_tokens` tokens. Wound-wait by age:
// preempts younger requests if need be, paused ones first, and never an older one that is not
// paused, nor its own; of another tenant only what that one has above its reserve, and never its
// oldest (that is not paused) if the reserve suffices for that; nor any for an isolated one, whom
// nothing of others helps. False: it stalls this step and keeps its blocks.
bool Grow(SchedulerState& state, Sequence& sequence, std::int32_t num_tokens);

// Hands blocks out to a running sequence, appended to its table and zeroed by this plan. Requires:
// the pool allows it.
void TakeBlocks(SchedulerState& state, base::SlotId slot, std::int32_t count);

// Blocks were handed out to one of the request's sequences.
void CountHandedOut(SchedulerState& state, LiveRequest& live, std::int32_t count);

}  // namespace pagoda::scheduler
