#pragma once

#include <istream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pagoda::client {

// Whether a text can stand in a request: whole UTF-8. InvalidArgument with `where`, the offset of
// the first byte that is not, and that byte.
absl::Status CheckText(std::string_view where, std::string_view text);

// The text of a file, or of `standard_input` for "-". Errors: those of ReadWholeFile and CheckText.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, std::istream& standard_input);

}  // namespace pagoda::client
