#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"
#include "server/config/tenant_settings.h"

namespace pagoda::server {

// The file of --tenants: sections `[NAME]`, lines `key = value` under them, `#` begins a comment.
//
//   [alpha]
//   token-digest = "..."          SHA-256 of a bearer token, in hex; repeat for more
//   certificate-name = "..."      a name in a client's certificate; repeat for more
//   weight = 2                    its part of steps and slots
//   reserve-blocks = 100          KV blocks that are always there for it
//   max-running = 8
//   max-queued-requests = 64
//   max-queued-tokens = 100000
//   isolated = true               uses its reserve alone
//
// Everything else is refused (InvalidArgument), with the file, the line, the key and the numbers. A
// refusal never repeats a value that could be a secret in the wrong place.
absl::StatusOr<std::vector<TenantSettings>> ParseTenants(std::string_view text,
                                                         std::string_view file);

// Reads, parses and checks the file against the rest of the configuration: the sums of queue bounds
// against the server's, certificate names against --tls-client-ca. Bounds left out become even
// shares of what is left.
absl::StatusOr<std::vector<TenantSettings>> LoadTenants(const ServerConfig& config);

}  // namespace pagoda::server
