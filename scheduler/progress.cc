#include "scheduler/progress.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/giving.h"

namespace pagoda::scheduler {
namespace {

bool NeedsBlock(const SchedulerState& state, const Sequence& sequence) {
  return base::DivUp(sequence.num_planned + 1, state.block_size()) >
         state.tables.size(sequence.slot);
}

// It got tokens, waits for the key of a block in the making, for blocks that are on their way, or
// is gone.
bool HasMoved(SchedulerState& state, const Tenant& tenant) {
  const LiveRequest& live = state.requests[*tenant.oldest_runnable];
  if (!live.is_running() || live.incarnation != tenant.oldest_incarnation) return true;
  // While a job is unfenced blocks may have been retiring when it asked, though a younger one's hit
  // has taken them back since: at its next plan it takes a victim instead.
  const bool blocks_are_coming =
      !state.jobs.empty() || state.pool.num_in(BlockState::kRetiring) > 0;
  for (const Choice& choice : live.request->choices()) {
    if (!choice.slot.has_value()) continue;
    const Sequence& sequence = state.SequenceIn(*choice.slot);
    if (state.draft.ItemOf(*choice.slot) != nullptr) return true;
    if (blocks_are_coming && NeedsBlock(state, sequence)) return true;
    if (sequence.waited_for_key == state.draft.job()) return true;
  }
  return false;
}

}  // namespace

void NoteOldest(SchedulerState& state) {
  std::int32_t num_sought = 0;
  for (Tenant& tenant : state.tenants) {
    tenant.oldest_runnable.reset();
    num_sought += tenant.num_slots > 0;
  }
  for (const base::SlotId slot : state.running) {
    if (num_sought == 0) return;
    const Sequence& sequence = state.SequenceIn(slot);
    Tenant& tenant = state.TenantOf(sequence);
    if (tenant.oldest_runnable.has_value() || !IsPlannable(sequence)) continue;
    tenant.oldest_runnable = sequence.request;
    tenant.oldest_incarnation = sequence.incarnation;
    --num_sought;
  }
}

void CheckOldestMoved(SchedulerState& state) {
  base::RequestId oldest = kNoBarrier;
  for (const Tenant& tenant : state.tenants) {
    if (!tenant.oldest_runnable.has_value()) continue;
    const LiveRequest& live = state.requests[*tenant.oldest_runnable];
    if (live.is_running()) oldest = std::min(oldest, live.request->id);
  }
  for (const Tenant& tenant : state.tenants) {
    if (!tenant.oldest_runnable.has_value()) continue;
    const LiveRequest& live = state.requests[*tenant.oldest_runnable];
    if (!live.is_running()) continue;
    const bool is_in_reserve =
        live.request->WorstCaseBlocks(state.block_size()) <= tenant.config.reserve_blocks;
    if (live.request->id != oldest && !is_in_reserve) continue;
    PAGODA_CHECK_MSG(HasMoved(state, tenant), "the oldest running request did not move");
  }
}

// With nothing planned, in flight or retiring, and nobody paused, what runs can always go on, and
// with nothing running the queue's head can be admitted. Anything else would wait for ever.
void CheckProgressIsPossible(const SchedulerState& state) {
  if (!state.jobs.empty() || state.pool.num_in(BlockState::kRetiring) > 0) return;
  bool runs = false, is_paused = false;
  for (const base::SlotId slot : state.running) {
    const bool paused = state.SequenceIn(slot).is_paused;
    runs |= !paused;
    is_paused |= paused;
  }
  PAGODA_CHECK_MSG(!runs, "a running request cannot go on, and nothing will change that");
  for (const TenantQueue& queue : state.queues) {
    PAGODA_CHECK_MSG(is_paused || !queue.Head().has_value(),
                     "a waiting request cannot start, and nothing will change that");
  }
}

}  // namespace pagoda::scheduler
