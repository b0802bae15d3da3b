// Derives what must hold between the scheduler's parts again from scratch.
#include <algorithm>
#include <vector>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/lifecycle.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {
namespace {

void CheckRunning(const SchedulerState& state, const Sequence& sequence) {
  const std::int32_t block_size = state.block_size();
  const std::int32_t size = state.tables.size(sequence.slot);
  PAGODA_CHECK(sequence.num_planned <= sequence.num_expected);
  PAGODA_CHECK(sequence.num_known() <= sequence.num_expected);
  PAGODA_CHECK(sequence.num_computed <= sequence.num_planned + 1);
  PAGODA_CHECK(sequence.num_computed <= sequence.num_known());
  PAGODA_CHECK(sequence.num_sealed * block_size <= sequence.num_computed);
  PAGODA_CHECK(base::DivUp(sequence.num_planned, block_size) <= size);
  PAGODA_CHECK(size <= sequence.request->WorstCaseBlocks(block_size));
  for (std::int32_t i = 0; i < size; ++i) {
    const BlockState block = state.pool.state(state.tables.at(sequence.slot, i));
    if (i < sequence.num_sealed) {
      PAGODA_CHECK(block == BlockState::kSealed);
    } else if (block == BlockState::kSealed) {
      // Adopted ahead, while earlier blocks of the sequence are still in the making.
      PAGODA_CHECK((i + 1) * block_size <= sequence.num_planned + 1);
    } else {
      PAGODA_CHECK(block == BlockState::kOwned);
    }
  }
}

// Every hold in the pool is an entry of a table, and the other way round.
void CheckHolders(const SchedulerState& state) {
  std::vector<std::int32_t> holders(static_cast<std::size_t>(state.pool.num_blocks()), 0);
  for (const SequenceIndex index : state.running) {
    const Sequence& sequence = state.sequences[index];
    for (std::int32_t i = 0; i < state.tables.size(sequence.slot); ++i) {
      ++holders[state.tables.at(sequence.slot, i).value()];
    }
  }
  for (std::uint32_t block = 1; block < holders.size(); ++block) {
    PAGODA_CHECK(state.pool.num_holders(base::BlockId(block)) == holders[block]);
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
  PAGODA_CHECK(waiting + state.running.size() == state.sequences.num_live());
  PAGODA_CHECK(std::ranges::is_sorted(
      state.running, {}, [&](SequenceIndex index) { return state.sequences[index].request->id; }));
  std::size_t occupied = 0;
  for (const Slot& slot : state.slots) occupied += slot.sequence != Slot::kNobody;
  PAGODA_CHECK(occupied == state.running.size());
  for (const SequenceIndex index : state.running) {
    const Sequence& sequence = state.sequences[index];
    PAGODA_CHECK(sequence.is_running());
    PAGODA_CHECK(state.slots[sequence.slot.value()].sequence == index);
    CheckRunning(state, sequence);
  }
  CheckHolders(state);
  const BlockStepTotals& totals = state.block_steps;
  PAGODA_CHECK(totals.Sum() == totals.steps * state.pool.num_blocks());
}

}  // namespace pagoda::scheduler
