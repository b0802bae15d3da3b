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

// It got tokens, waits for what is on its way (a block in the making, retiring blocks that will
// cover its need, blocks of an older one that ends by itself), or is gone.
bool HasMoved(SchedulerState& state, const Tenant& tenant, bool waits_for_older) {
  const LiveRequest& live = state.requests[*tenant.oldest_runnable];
  if (!live.is_running() || live.incarnation != tenant.oldest_incarnation) return true;
  for (const Choice& choice : live.request->choices()) {
    if (!choice.slot.has_value()) continue;
    const Sequence& sequence = state.SequenceIn(*choice.slot);
    if (state.draft.ItemOf(*choice.slot) != nullptr) return true;
    if (waits_for_older && NeedsBlock(state, sequence)) return true;
    if (sequence.waited_in == state.draft.job()) return true;
  }
  return false;
}

}  // namespace

void NoteOldest(SchedulerState& state) {
  std::int32_t num_sought = 0;
  bool older_is_in_flight = false;
  for (Tenant& tenant : state.tenants) {
    tenant.oldest.reset();
    tenant.oldest_runnable.reset();
    tenant.waits_for_own_older = false;
    num_sought += tenant.num_slots > 0;
  }
  for (const base::SlotId slot : state.running) {
    if (num_sought == 0) return;
    const Sequence& sequence = state.SequenceIn(slot);
    Tenant& tenant = state.TenantOf(sequence);
    if (tenant.oldest_runnable.has_value() || sequence.is_paused) continue;
    if (!tenant.oldest.has_value()) tenant.oldest = sequence.request;
    if (!IsPlannable(sequence)) {
      tenant.waits_for_own_older = older_is_in_flight = true;
      continue;
    }
    tenant.waits_for_any_older = older_is_in_flight;
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
    const bool waits_for_older =
        is_in_reserve ? tenant.waits_for_own_older : tenant.waits_for_any_older;
    PAGODA_CHECK_MSG(HasMoved(state, tenant, waits_for_older),
                     "the oldest running request did not move");
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
