#include "scheduler/reconfiguration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/status_macros.h"

namespace pagoda::scheduler {
namespace {

// Each request that was let in could run, and what runs keeps the slots it is allowed to.
bool FitsRequests(const SchedulerState& state, std::span<const TenantConfig> tenants) {
  for (const LiveRequest& live : state.requests.all()) {
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    const base::TenantId tenant = live.request->tenant;
    const std::int32_t capacity = CapacityOf(state.pool.num_usable(), tenants, tenant);
    if (live.request->WorstCaseBlocks(state.block_size()) > capacity) return false;
    if (live.num_open > FloorsOf(state.config, tenants, tenant).slots) return false;
  }
  for (std::uint32_t t = 0; t < tenants.size(); ++t) {
    const std::int32_t slots = FloorsOf(state.config, tenants, base::TenantId(t)).slots;
    if (tenants[t].isolated && state.tenants[t].num_slots > slots) return false;
  }
  return true;
}

}  // namespace

absl::Status AskForTenants(SchedulerState& state, std::vector<TenantConfig> tenants) {
  if (tenants.size() != state.tenants.size()) {
    return base::FieldError(
        "tenants", absl::StrCat("are ", tenants.size(), ", configured are ", state.tenants.size()));
  }
  SchedulerConfig config = state.config;
  config.tenants = std::move(tenants);
  if (state.derives_attention_chunks) config.max_attention_chunks_per_step = 0;
  PAGODA_RETURN_IF_ERROR(CheckConfig(config));
  state.pending_tenants = WithDefaults(std::move(config)).tenants;
  state.pending_shares = SharesOf(state.pending_tenants);
  return absl::OkStatus();
}

void TryReconfigure(SchedulerState& state) {
  if (state.pending_tenants.empty()) return;
  if (!FitsRequests(state, state.pending_tenants)) return;
  if (!state.pool.TrySetShares(state.pending_shares)) return;
  state.config.tenants.swap(state.pending_tenants);
  state.pending_tenants.clear();
  SetFloors(state);
}

void SetFloors(SchedulerState& state) {
  SchedulerConfig& config = state.config;
  if (state.derives_attention_chunks) config.max_attention_chunks_per_step = DeriveChunks(config);
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    Tenant& tenant = state.tenants[t];
    tenant.config = config.tenants[t];
    tenant.floors = FloorsOf(config, config.tenants, base::TenantId(t));
    PAGODA_CHECK(CapacityOf(state.pool.num_usable(), config.tenants, base::TenantId(t)) ==
                 state.pool.Capacity(base::TenantId(t)));
  }
}

}  // namespace pagoda::scheduler
