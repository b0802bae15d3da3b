#pragma once

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// The moves of one sequence between waiting, running and ended, and what they do to its blocks.

// Its keys are of the current epoch: its blocks may be found and may be published.
bool UsesCache(const SchedulerState& state, const Sequence& sequence);
// Keys all full blocks of known tokens. Requires: running, UsesCache.
void ExtendKeys(Sequence& sequence);
// The key of the block before `block_index` of the sequence's tokens.
const BlockKey& ParentKey(const Sequence& sequence, std::int32_t block_index);

// Waiting -> running: takes a free slot. The caller gives it blocks.
void StartRunning(SchedulerState& state, SequenceIndex index);
// Running -> waiting, without blocks: the victim of a growth, recomputed later.
void Preempt(SchedulerState& state, SequenceIndex index);
// Its step failed: ends it with kFailed, or running -> waiting to try again.
void RollBack(SchedulerState& state, SequenceIndex index);
// Any state -> ended; the finish event is queued.
void End(SchedulerState& state, SequenceIndex index, FinishReason reason);

// Jobs have computed the first `num_computed` tokens: publishes the blocks that are full by now.
void SealComputed(SchedulerState& state, Sequence& sequence, std::int32_t num_computed);
// While the sequence stands at a block boundary and its next block is indexed: takes that block
// instead of computing it.
void AdoptAhead(SchedulerState& state, SequenceIndex index);
// Whether another sequence is writing the block that this one would compute next, so that waiting a
// step saves the work.
bool NextBlockIsBeingWritten(const SchedulerState& state, Sequence& sequence);

}  // namespace pagoda::scheduler
