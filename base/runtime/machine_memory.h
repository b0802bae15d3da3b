#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pagoda::base {

// Memory that this process can still take, in bytes: the machine's, cut to what its control group
// allows. `root` stands before /proc and /sys; empty but in tests.
absl::StatusOr<std::int64_t> AvailableMemory(const std::string& root = "");

}  // namespace pagoda::base
