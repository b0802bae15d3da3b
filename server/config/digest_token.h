#pragma once

#include <istream>
#include <string>

#include "absl/status/statusor.h"

namespace pagoda::server {

// Reads a bearer token and says what to write into the tenants file for it: its digest in hex.
// InvalidArgument for what cannot be a token, or is short enough to be guessed. The end of its line
// is not part of it.
absl::StatusOr<std::string> DigestTokenFrom(std::istream& input);

}  // namespace pagoda::server
