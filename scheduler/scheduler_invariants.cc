// Derives what must hold between the scheduler's parts again from scratch.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/lifecycle.h"
#include "scheduler/owner_check.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {
namespace {

void CheckTable(const SchedulerState& state, const Sequence& sequence) {
  const std::int32_t block_size = state.block_size();
  for (std::int32_t i = 0; i < state.tables.size(sequence.slot); ++i) {
    const base::BlockId block = state.tables.at(sequence.slot, i);
    if (sequence.waits_for_prompt && i < sequence.prompt_length / block_size) {
      PAGODA_CHECK(block == base::kNullBlock);
      continue;
    }
    const BlockState block_state = state.pool.state(block);
    if (i < sequence.num_sealed) {
      PAGODA_CHECK(IsReadOnly(block_state));
    } else if (block_state == BlockState::kSealed) {
      // Adopted ahead, while earlier blocks of the sequence are still in the making.
      PAGODA_CHECK((i + 1) * block_size <= sequence.num_planned + 1);
    } else {
      PAGODA_CHECK(block_state == BlockState::kOwned);
    }
  }
}

// What stands in the sequence beside its request.
void CheckAgreesWithRequest(const SchedulerState& state, const Sequence& sequence) {
  const LiveRequest& live = state.RequestOf(sequence);
  const Choice& choice = state.ChoiceOf(sequence);
  PAGODA_CHECK(sequence.tenant == live.request->tenant);
  PAGODA_CHECK(sequence.request_id == live.request->id);
  PAGODA_CHECK(sequence.record == &live.request->choice(sequence.choice));
  PAGODA_CHECK(sequence.incarnation == live.incarnation);
  PAGODA_CHECK(sequence.is_paused == live.paused);
  PAGODA_CHECK(sequence.num_known == choice.num_known());
  PAGODA_CHECK(sequence.newest_token == choice.tokens.back());
  PAGODA_CHECK(sequence.num_keyed <= static_cast<std::int32_t>(choice.keys.size()));
  PAGODA_CHECK(sequence.began_after_failure || live.num_failures == 0);
  PAGODA_CHECK(sequence.owner == OwnerOf(live));
}

void CheckSequence(const SchedulerState& state, const Sequence& sequence) {
  const std::int32_t block_size = state.block_size();
  const std::int32_t size = state.tables.size(sequence.slot);
  PAGODA_CHECK(sequence.num_planned <= sequence.num_expected);
  PAGODA_CHECK(sequence.num_known <= sequence.num_expected);
  PAGODA_CHECK(sequence.num_computed <= sequence.num_planned + 1);
  PAGODA_CHECK(sequence.num_computed <= sequence.num_known);
  PAGODA_CHECK(sequence.num_sealed * block_size <= sequence.num_computed);
  PAGODA_CHECK(base::DivUp(sequence.num_planned, block_size) <= size);
  PAGODA_CHECK(!sequence.waits_for_prompt || sequence.num_planned == 0);
  CheckTable(state, sequence);
  CheckAgreesWithRequest(state, sequence);
}

// All open choices run or none does; the first of them waits for nobody.
void CheckRequest(const SchedulerState& state, const LiveRequest& live) {
  std::int32_t num_open = 0;
  for (const Choice& choice : live.request->choices()) {
    num_open += choice.is_open();
    PAGODA_CHECK(choice.slot.has_value() == (choice.is_open() && live.is_running()));
    PAGODA_CHECK(!choice.slot.has_value() || state.SequenceIn(*choice.slot).slot == *choice.slot);
  }
  PAGODA_CHECK(num_open == live.num_open);
  PAGODA_CHECK(num_open > 0);
  if (!live.is_running()) return;
  PAGODA_CHECK(!state.SequenceIn(*live.first_open().slot).waits_for_prompt);
  PAGODA_CHECK(BlocksHeld(state, live) <= live.request->WorstCaseBlocks(state.block_size()));
}

// Every hold in the pool is an entry of a table, and the other way round.
void CheckHolders(const SchedulerState& state) {
  std::vector<std::int32_t> holders(static_cast<std::size_t>(state.pool.num_blocks()), 0);
  for (const base::SlotId slot : state.running) {
    for (std::int32_t i = 0; i < state.tables.size(slot); ++i) {
      ++holders[state.tables.at(slot, i).value()];
    }
  }
  for (std::uint32_t block = 1; block < holders.size(); ++block) {
    PAGODA_CHECK(state.pool.num_holders(base::BlockId(block)) == holders[block]);
  }
}

// What is counted as requests move, and the bounds of tenants.
void CheckTenants(const SchedulerState& state) {
  std::vector<Tenant> counted(state.tenants.size());
  std::int32_t num_with_deadline = 0;
  for (const LiveRequest& live : state.requests.all()) {
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    Tenant& tenant = counted[live.request->tenant.value()];
    tenant.num_slots += live.is_running() ? live.num_open : 0;
    tenant.num_running += live.is_running();
    tenant.num_new += !live.was_admitted;
    num_with_deadline += !live.request->deadline().is_never();
    PAGODA_CHECK(live.was_admitted || !live.is_running());
  }
  PAGODA_CHECK(num_with_deadline == state.num_with_deadline);
  for (std::size_t t = 0; t < state.tenants.size(); ++t) {
    const Tenant& tenant = state.tenants[t];
    PAGODA_CHECK(counted[t].num_slots == tenant.num_slots);
    PAGODA_CHECK(counted[t].num_running == tenant.num_running);
    PAGODA_CHECK(counted[t].num_new == tenant.num_new);
    PAGODA_CHECK_MSG(tenant.is_elastic() || tenant.num_slots <= tenant.floors.slots,
                     "an isolated tenant has more slots than its floor");
  }
}

}  // namespace

void Scheduler::CheckInvariants() const {
  const SchedulerState& state = *state_;
  state.pool.CheckInvariants();
  state.cache.CheckInvariants();
  std::size_t waiting = 0;
  for (const TenantQueue& queue : state.queues) {
    queue.CheckInvariants();
    waiting += queue.size();
  }
  std::size_t running = 0;
  for (const LiveRequest& live : state.requests.all()) {
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    running += live.is_running();
    CheckRequest(state, live);
  }
  PAGODA_CHECK(waiting + running == state.requests.num_live());
  PAGODA_CHECK(std::ranges::is_sorted(state.running, {}, [&](base::SlotId slot) {
    const Sequence& sequence = state.SequenceIn(slot);
    return std::pair(state.RequestOf(sequence).request->id, sequence.choice);
  }));
  std::size_t occupied = 0;
  for (const Slot& slot : state.slots) occupied += slot.request != Slot::kNobody;
  PAGODA_CHECK(occupied == state.running.size());
  for (const base::SlotId slot : state.running) {
    const Sequence& sequence = state.SequenceIn(slot);
    PAGODA_CHECK(state.slots[slot.value()].request == sequence.request);
    PAGODA_CHECK(state.ChoiceOf(sequence).slot == slot);
    CheckSequence(state, sequence);
  }
  CheckHolders(state);
  CheckTenants(state);
  const BlockStepTotals& totals = state.block_steps;
  PAGODA_CHECK(totals.Sum() == totals.steps * state.pool.num_blocks());
}

}  // namespace pagoda::scheduler
