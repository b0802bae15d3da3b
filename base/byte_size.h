#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace pagoda::base {

// "1073741824", "1.5GiB", "512M": a number and an optional unit. K, M, G, T and KiB ... are powers
// of 1,024, KB ... of 1,000. InvalidArgument says what was read.
absl::StatusOr<std::int64_t> ParseByteSize(std::string_view text);

// "1.5 GiB", to the nearest tenth.
std::string FormatBytes(std::int64_t bytes);

// The same for advice: never less than `bytes`, and as ParseByteSize reads it.
std::string FormatBytesUp(std::int64_t bytes);

}  // namespace pagoda::base
