#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"

namespace pagoda::server {

// PAGODA_* variables, by name.
using Environment = std::map<std::string, std::string>;
Environment ReadEnvironment();
// gRPC writes nothing of its own, unless GRPC_VERBOSITY says otherwise: what matters comes back as
// a status. Before gRPC is first used, while there is one thread.
void SilenceTransport();

struct ParsedConfig {
  ServerConfig config;
  std::string
      print;  // what --help, --version, --print-config or --check-config ask for; print and exit 0
  bool asks_to_exit = false;
  bool checks_config = false;  // and the model is to be looked into before that is printed
  bool digest_token = false;   // and what to print is made from stdin (digest_token.h)
};

// Flag before environment before file (--config) before default. `arguments` without the program's
// name. InvalidArgument for an unknown flag, variable or key, a value out of range, and
// combinations that cannot work: what was asked, found, to do.
absl::StatusOr<ParsedConfig> ParseConfig(std::span<const std::string> arguments,
                                         const Environment& environment);

}  // namespace pagoda::server
