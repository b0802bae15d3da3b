#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/request.h"
#include "scheduler/scheduler_config.h"
#include "server/config/server_config.h"
#include "server/core/admission_gate.h"
#include "server/core/auth/authenticator.h"

namespace pagoda::server {

// The tenants of the configuration as each part of the server wants them. The i-th is TenantId{i}
// everywhere.

// Asks callers as the configuration says: by the tenants' credentials, or nobody.
std::unique_ptr<Authenticator> MakeAuthenticator(const ServerConfig& config);

std::vector<TenantCredentials> CredentialsOf(const std::vector<TenantSettings>& tenants);

std::vector<scheduler::TenantConfig> SchedulerTenantsOf(const std::vector<TenantSettings>& tenants);

// What each one's requests are checked against: the model's limits, and what the scheduler gives
// it.
std::vector<scheduler::ModelLimits> LimitsOf(const scheduler::SchedulerConfig& scheduling,
                                             const scheduler::ModelLimits& model);

// scheduler::CheckConfig, in an operator's words: tenants by their names, bounds by their flags or
// by their keys in the file. The config is the one that the server would have with the tenants of
// `config`.
absl::Status CheckScheduling(const ServerConfig& config,
                             const scheduler::SchedulerConfig& scheduling);

// What each may have inside; of a server without tenants the one that everybody shares.
std::vector<TenantBounds> BoundsOf(const ServerConfig& config);

// Tenants read again, in the order of those that the server runs with. InvalidArgument, with the
// names, when they are not the same ones, or one is isolated that was not, or the reverse: that
// takes a restart.
absl::StatusOr<std::vector<TenantSettings>> InOrderOf(const std::vector<TenantSettings>& running,
                                                      std::vector<TenantSettings> read);

}  // namespace pagoda::server
