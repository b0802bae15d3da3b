#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace pagoda::text::jinja {

// A moment (seconds since 1970, UTC) as strftime spells it in the C locale. Errors: InvalidArgument
// for a conversion that is not here, by name.
absl::StatusOr<std::string> FormatTime(std::string_view format, std::int64_t unix_seconds);

}  // namespace pagoda::text::jinja
