#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace pagoda::base {

// Debian's abseil has its own string_view, which does not convert to or from the standard one. Our
// interfaces use std::string_view; these two are the only bridge.
inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace pagoda::base
