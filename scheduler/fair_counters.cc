#include "scheduler/fair_counters.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "scheduler/admission.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {

std::int64_t ChargeOf(const Tenant& tenant, std::int64_t amount) {
  PAGODA_CHECK(amount >= 0);
  const std::int64_t weight = PAGODA_MUTANT(kWeightsIgnored) ? 1 : tenant.config.weight;
  return amount * kCounterScale / weight;
}

void Charge(Tenant& tenant, std::int64_t amount) { tenant.counter += ChargeOf(tenant, amount); }

bool IsEligible(SchedulerState& state, base::TenantId id) {
  const Tenant& tenant = state.tenants[id.value()];
  const auto head = state.queues[id.value()].Head();
  if (!head.has_value() || !tenant.is_elastic()) return false;
  const std::int32_t slots = tenant.num_slots + state.requests[*head].num_open;
  if (slots > state.config.max_num_seqs || IsAtItsLimit(tenant)) return false;
  return state.pool.CouldTakeAlone(id, NeedOfHead(state, id, *head));
}

void LiftCounters(SchedulerState& state) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    Tenant& tenant = state.tenants[t];
    tenant.is_eligible = IsEligible(state, base::TenantId(t));
    if (!tenant.is_eligible) continue;
    ++tenant.counts.num_eligible_steps;
    least = std::min(least, tenant.counter);
    most = std::max(most, tenant.counter);
  }
  if (least > most || PAGODA_MUTANT(kCreditIsBanked)) return;  // nobody is eligible
  const SchedulerConfig& config = state.config;
  const std::int64_t step = std::max(kChargeOfPromptToken * config.max_model_len,
                                     kChargeOfDecodeToken * config.max_num_batched_tokens) *
                            kCounterScale;
  for (Tenant& tenant : state.tenants) {
    if (!tenant.is_elastic()) continue;
    if (!tenant.is_eligible) tenant.counter = std::max(tenant.counter, least);
    const std::int64_t floor = most - 2 * step / tenant.config.weight;
    if (tenant.counter >= floor) continue;
    tenant.counts.num_lifts += tenant.is_eligible;
    tenant.counter = floor;
  }
}

}  // namespace pagoda::scheduler
