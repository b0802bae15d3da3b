#pragma once

#include <cstdint>

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// A preempted request that was preempted this often is readmitted only with room to get somewhere.
inline constexpr std::int32_t kPreemptionsBeforeReserve = 3;

// What an admission, or a running sequence, draws on: its tenant's floors, or what they left of the
// whole step.
enum class Purse : std::uint8_t { kFloor, kRest };

enum class Admission : std::uint8_t {
  kGiven,
  kRefusedForCommon,  // only for blocks of common
  kRefused,
};

// Whether the head of the queue could be given its slots and all blocks it needs now. Changes
// nothing.
Admission Judge(SchedulerState& state, RequestIndex index, Purse purse);
// Gives each open choice a slot, the cached blocks of its prefix and blocks for the rest of its
// known tokens. Never preempts for blocks; within the floors of its tenant it takes the slots it
// lacks from the youngest requests of those above theirs. The caller plans its first tokens. Unless
// kGiven nothing has changed; one that needs several slots is never given some of them.
Admission TryAdmit(SchedulerState& state, RequestIndex index, Purse purse);

// Whether the tenant runs as many requests as it may.
inline bool IsAtItsLimit(const Tenant& tenant) {
  return tenant.config.max_running > 0 && tenant.num_running >= tenant.config.max_running;
}
// Blocks the tenant's head would pin, as they were when first asked in this plan.
std::int32_t NeedOfHead(SchedulerState& state, base::TenantId tenant, RequestIndex head);
// Computes the barrier again. It only ever moves to older requests within one plan.
void RaiseBarrier(SchedulerState& state);

}  // namespace pagoda::scheduler
