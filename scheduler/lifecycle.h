#pragma once

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// The moves of one request between waiting, running and ended, and what they do to the blocks of
// its sequences.

// Its keys are of the current epoch: its blocks may be found and may be published.
// Whether what it computes is published. `ReadsCache`: whether it also takes what others published.
bool UsesCache(const SchedulerState& state, const LiveRequest& live);
bool ReadsCache(const SchedulerState& state, const LiveRequest& live);
// Keys all full blocks of the sequence's known tokens. Requires: UsesCache.
void ExtendKeys(SchedulerState& state, Sequence& sequence);
// The key of the block before `block_index` of the sequence's tokens.
const BlockKey& ParentKey(const SchedulerState& state, const Sequence& sequence,
                          std::int32_t block_index);

// Waiting -> running: takes a free slot for each open choice. The caller gives them blocks.
void StartRunning(SchedulerState& state, RequestIndex index);
// Running -> waiting, without blocks: the victim of a growth, recomputed later.
void Preempt(SchedulerState& state, RequestIndex index);
// Its step failed: ends it with kFailed, or running -> waiting to try again.
void RollBack(SchedulerState& state, RequestIndex index);
// Any state -> ended, with all open choices; the finish event is queued.
void End(SchedulerState& state, RequestIndex index, FinishReason reason);
// One choice ends; the last one ends the request.
void EndChoice(SchedulerState& state, RequestIndex index, std::uint32_t choice,
               FinishReason reason);

// Blocks that the running request's tables name, each once.
std::int32_t BlocksHeld(const SchedulerState& state, const LiveRequest& live);

// The block will soon be full: keys it, and has the processor fetch what its seal will touch.
void FetchForSeal(SchedulerState& state, Sequence& sequence, std::int32_t block_index);
// Jobs have computed the first `num_computed` tokens: publishes the blocks that are full by now.
void SealComputed(SchedulerState& state, Sequence& sequence, std::int32_t num_computed);
// While the sequence stands at a block boundary and its next block is indexed: takes that block
// instead of computing it.
void AdoptAhead(SchedulerState& state, Sequence& sequence);
// Whether another sequence is writing the block that this one would compute next, so that waiting a
// step saves the work.
bool NextBlockIsBeingWritten(SchedulerState& state, Sequence& sequence);

}  // namespace pagoda::scheduler
