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

struct ParsedConfig {
  ServerConfig config;
  std::string
      print;  // what --help, --version, --print-config or --check-config ask for; print and exit 0
  bool asks_to_exit = false;
  bool digest_token = false;  // and what to print is made from stdin (digest_token.h)
};

// Flag before environment before file (--config) before default. `arguments` without the program's
// name. InvalidArgument for an unknown flag, variable or key, a value out of range, and
// combinations that cannot work: what was asked, found, to do.
absl::StatusOr<ParsedConfig> ParseConfig(std::span<const std::string> arguments,
                                         const Environment& environment);

}  // namespace pagoda::server
