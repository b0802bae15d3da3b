#pragma once

#include <cstdint>

#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// Whose turn it is among elastic tenants when what the floors left over is shared out: the lowest
// counter's. A counter grows by what was asked for over the weight, in integers: the whole prompt
// at the first admission, whatever the cache holds of it, and each planned decode token; never for
// what is computed again, and never back.
inline constexpr std::int64_t kChargeOfPromptToken = 1;  // w_p
inline constexpr std::int64_t kChargeOfDecodeToken = 2;  // w_q
inline constexpr std::int64_t kCounterScale = 1 << 20;

// What an amount adds to the tenant's counter.
std::int64_t ChargeOf(const Tenant& tenant, std::int64_t amount);
void Charge(Tenant& tenant, std::int64_t amount);

// Once per step, before anything is planned. A tenant that asks for nothing, or for what it could
// not get even alone, keeps no credit against the eligible ones; and nobody keeps more than two
// steps' worth. An eligible one that is lifted is counted.
void LiftCounters(SchedulerState& state);

// Whether the head of its queue would be admitted if no other tenant held anything. Work that runs
// does not make it eligible.
bool IsEligible(SchedulerState& state, base::TenantId tenant);

}  // namespace pagoda::scheduler
