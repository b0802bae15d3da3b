#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace pagoda::server {

// Checks what single flags cannot: addresses, sizes, combinations. Fills the fields derived from
// texts.
absl::Status CheckConfig(ServerConfig& config);

// Whether only this machine reaches it.
bool IsLoopback(std::string_view host);

}  // namespace pagoda::server
