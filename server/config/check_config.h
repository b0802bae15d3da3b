#pragma once

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace pagoda::server {

// Checks what single flags cannot: addresses, sizes, combinations. Fills the fields derived from
// texts.
absl::Status CheckConfig(ServerConfig& config);

}  // namespace pagoda::server
