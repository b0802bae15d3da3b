#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace pagoda::base {

// An InvalidArgument that names the request field at fault, so that a door can report a field
// violation. Further causes that a door must tell apart travel the same way: as a short upper-case
// reason.
absl::Status FieldError(std::string_view field, std::string_view description);
// The field of a status made by FieldError; empty otherwise.
std::string FieldOf(const absl::Status& status);

// `status` with a machine-readable reason (UPPER_SNAKE, <= 63 characters), for
// google.rpc.ErrorInfo.
absl::Status WithReason(absl::Status status, std::string_view reason);
std::string ReasonOf(const absl::Status& status);

}  // namespace pagoda::base
