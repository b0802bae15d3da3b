#pragma once

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// What must hold so that everything accepted is answered, asserted at every plan (README.md,
// "Progress").

// At the start of a plan: notes the oldest request of each tenant that has something to compute.
void NoteOldest(SchedulerState& state);
// At its end: of those the oldest of all has moved, and each whose worst case its tenant's reserve
// holds.
void CheckOldestMoved(SchedulerState& state);
// Of a plan with nothing in it.
void CheckProgressIsPossible(const SchedulerState& state);

}  // namespace pagoda::scheduler
