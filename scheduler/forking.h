#pragma once

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// The prompt of a request with several choices is computed once, by its first open choice. The
// others hold their own blocks from the admission on, wait, and take the prompt over when a
// completed job has computed the last of it:
//
//   first   | p0 | p1 | p2 . |          p2 holds the last tokens of the prompt, and is copied
//   other   | -- | -- | own  |   then   | p0 | p1 | own: copy of p2's prompt tokens |
//
// Their first tokens are drawn from the row with which the first one ends the prompt, unless they
// have tokens from before a preemption.

// The others are to draw from the row that ends the prompt in `item`, which samples.
void ShareLastPromptRow(SchedulerState& state, const DraftItem& item);
// A job of the request is complete: the others go on by themselves, if the prompt is computed. The
// partial block is copied by the next plan.
void ForkWaiting(SchedulerState& state, const Sequence& first);
// Puts the copies that ForkWaiting promised before everything else in the draft: whatever the plan
// hands out after them may be what they read.
void PlanForkCopies(SchedulerState& state);

}  // namespace pagoda::scheduler
