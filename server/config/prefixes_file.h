#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"
#include "server/config/tenant_settings.h"

namespace pagoda::server {

// The file of --public-prefixes: sections `[NAME]`, lines `key = value` under them.
//
//   [house-rules]
//   system-file = "rules.txt"   how every Chat begins: the content of its system message
//   tenant = "alpha"            who may read it; repeat for more. Left out: everybody
//
//   [manual]
//   text-file = "manual.txt"    how the text of a Generate begins
//
// A section has one of the two keys; relative names are looked for beside the file. Everything else
// is refused (InvalidArgument), with the file, the line and the key.
absl::StatusOr<std::vector<PublicPrefixSettings>> ParsePrefixes(std::string_view text,
                                                                std::string_view file);

// Reads the file and the files that it names. Tenants must be the configuration's.
absl::StatusOr<std::vector<PublicPrefixSettings>> LoadPrefixes(const ServerConfig& config);

}  // namespace pagoda::server
