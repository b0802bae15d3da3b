// What operators do to a pipeline that runs. While a change of tenants is under way the gate lets
// in only what fits both the old and the new ones, and requests that were checked against wider
// limits reach the engine before it hears of narrower ones: so whatever the engine is given fits
// what it holds, whenever the change takes effect there.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/core/pipeline.h"

namespace pagoda::server {
namespace {

std::vector<TenantBounds> Narrower(const std::vector<TenantBounds>& a,
                                   const std::vector<TenantBounds>& b) {
  std::vector<TenantBounds> both = a;
  for (std::size_t i = 0; i < both.size(); ++i) {
    both[i].max_requests = std::min(a[i].max_requests, b[i].max_requests);
    both[i].max_queued_tokens = std::min(a[i].max_queued_tokens, b[i].max_queued_tokens);
  }
  return both;
}

}  // namespace

absl::StatusOr<std::int32_t> Pipeline::FlushPrefixCache(const std::optional<std::string>& tenant) {
  if (!tenant.has_value()) return engine_->FlushPrefixCache(std::nullopt);
  const auto found = std::ranges::find(options_.tenants, *tenant, &TenantBounds::name);
  if (found == options_.tenants.end()) {
    std::string known;
    for (const TenantBounds& one : options_.tenants) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", one.name);
    }
    return absl::NotFoundError(
        absl::StrCat("no tenant is called \"", *tenant, "\"; known are ", known));
  }
  return engine_->FlushPrefixCache(
      base::TenantId{static_cast<std::uint32_t>(found - options_.tenants.begin())});
}

absl::Status Pipeline::ChangeTenants(TenantChange change) {
  const std::vector<scheduler::ModelLimits> limits = limits_.current()->by_tenant();
  gate_.SetBounds(Narrower(bounds_, change.bounds));
  limits_.Replace(server::Narrower(limits, change.limits));
  if (absl::Status status = engine_->Reconfigure(change.configs); !status.ok()) {
    gate_.SetBounds(bounds_);
    limits_.Replace(limits);
    return status;
  }
  bounds_ = Narrower(bounds_, change.bounds);
  unsettled_ = std::move(change);
  SettleTenants();
  return absl::OkStatus();
}

bool Pipeline::SettleTenants() {
  if (!unsettled_.has_value()) return true;
  if (engine_->stats().is_reconfiguring) return false;
  bounds_ = unsettled_->bounds;
  gate_.SetBounds(bounds_);
  limits_.Replace(std::move(unsettled_->limits));
  unsettled_.reset();
  return true;
}

std::vector<TenantReport> Pipeline::tenant_reports() const {
  const std::vector<scheduler::TenantStats> stats = engine_->tenant_stats();
  std::vector<TenantReport> reports;
  for (std::uint32_t i = 0; i < options_.tenants.size(); ++i) {
    reports.push_back({.name = options_.tenants[i].name,
                       .num_refused = gate_.num_refused(base::TenantId{i}),
                       .stats = i < stats.size() ? stats[i] : scheduler::TenantStats{}});
  }
  return reports;
}

}  // namespace pagoda::server
