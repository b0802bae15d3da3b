#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace pagoda::text::jinja {

// The value of a string literal, given what stands between its quotes: Python's escapes, an unknown
// one kept as it is. Errors: InvalidArgument with the line for a broken or unsupported escape.
absl::StatusOr<std::string> DecodeStringLiteral(std::string_view body, std::uint32_t line);

}  // namespace pagoda::text::jinja
