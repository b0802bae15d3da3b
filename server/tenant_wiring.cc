#include "server/tenant_wiring.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/ids.h"
#include "scheduler/scheduler.h"

namespace pagoda::server {

std::unique_ptr<Authenticator> MakeAuthenticator(const ServerConfig& config) {
  if (!config.tenant_settings.empty()) {
    return std::make_unique<Authenticator>(DrawSecret(), CredentialsOf(config.tenant_settings));
  }
  return std::make_unique<Authenticator>(
      config.anonymous ? Authenticator::Mode::kAnonymous : Authenticator::Mode::kOneTenant,
      DrawSecret());
}

std::vector<TenantCredentials> CredentialsOf(const std::vector<TenantSettings>& tenants) {
  std::vector<TenantCredentials> all;
  all.reserve(tenants.size());
  for (const TenantSettings& tenant : tenants) {
    all.push_back({.name = tenant.name,
                   .token_digests = tenant.token_digests,
                   .certificate_names = tenant.certificate_names});
  }
  return all;
}

std::vector<scheduler::TenantConfig> SchedulerTenantsOf(
    const std::vector<TenantSettings>& tenants) {
  std::vector<scheduler::TenantConfig> all;
  all.reserve(tenants.size());
  for (const TenantSettings& tenant : tenants) {
    all.push_back({.name = tenant.name,
                   .weight = tenant.weight,
                   .reserve_blocks = tenant.reserve_blocks,
                   .max_queued_requests = tenant.max_queued_requests,
                   .max_queued_tokens = tenant.max_queued_tokens,
                   .max_running = tenant.max_running,
                   .isolated = tenant.isolated});
  }
  return all;
}

std::vector<scheduler::ModelLimits> LimitsOf(const scheduler::SchedulerConfig& scheduling,
                                             const scheduler::ModelLimits& model) {
  const std::size_t num_tenants = std::max<std::size_t>(1, scheduling.tenants.size());
  std::vector<scheduler::ModelLimits> all(num_tenants, model);
  for (std::uint32_t i = 0; i < num_tenants; ++i) {
    const base::TenantId tenant{i};
    all[i].capacity_blocks = scheduler::Scheduler::CapacityBlocks(scheduling, tenant);
    all[i].max_num_seqs = scheduler::Scheduler::MaxChoices(scheduling, tenant);
  }
  return all;
}

absl::Status CheckScheduling(const ServerConfig& config,
                             const scheduler::SchedulerConfig& scheduling) {
  absl::Status status = scheduler::CheckConfig(scheduling);
  if (status.ok() || config.tenant_settings.empty()) return status;
  std::string text(status.message());
  for (std::size_t i = 0; i < config.tenant_settings.size(); ++i) {
    const std::string index = absl::StrCat("tenants[", i, "].");
    if (const std::size_t at = text.find(index); at != std::string::npos) {
      text.replace(at, index.size(), absl::StrCat("tenant ", config.tenant_settings[i].name, ", "));
    }
  }
  return absl::Status(status.code(), absl::StrCat("--tenants ", config.tenants, ": ", text));
}

absl::StatusOr<std::vector<TenantSettings>> InOrderOf(const std::vector<TenantSettings>& running,
                                                      std::vector<TenantSettings> read) {
  std::vector<TenantSettings> ordered;
  for (const TenantSettings& known : running) {
    const auto found = std::ranges::find(read, known.name, &TenantSettings::name);
    if (found == read.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tenant ", known.name,
                       " is no longer in the file; to take one away restart the server, "
                       "or leave it without credentials"));
    }
    if (found->isolated != known.isolated) {
      return absl::InvalidArgumentError(
          absl::StrCat("tenant ", known.name, ", isolated: is ", known.isolated ? "true" : "false",
                       " while the server runs; restart it to change that"));
    }
    ordered.push_back(*found);
  }
  for (const TenantSettings& tenant : read) {
    if (std::ranges::find(running, tenant.name, &TenantSettings::name) != running.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tenant ", tenant.name, " is unknown; restart the server to add one"));
  }
  return ordered;
}

std::vector<TenantBounds> BoundsOf(const ServerConfig& config) {
  if (config.tenant_settings.empty()) {
    return {{.name = "default",
             .max_requests = config.max_queued_requests,
             .max_queued_tokens = config.max_queued_tokens}};
  }
  std::vector<TenantBounds> all;
  all.reserve(config.tenant_settings.size());
  for (const TenantSettings& tenant : config.tenant_settings) {
    all.push_back({.name = tenant.name,
                   .max_requests = tenant.max_queued_requests,
                   .max_queued_tokens = tenant.max_queued_tokens});
  }
  return all;
}

}  // namespace pagoda::server
