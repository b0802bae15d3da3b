#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace pagoda::text::jinja {

// The one form of every error of a template, and of every refusal of what this engine does not
// have.
inline absl::Status ErrorAtLine(std::uint32_t line, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("chat template, line ", line, ": ", base::ToAbsl(what)));
}
inline absl::Status NotSupported(std::uint32_t line, std::string_view feature) {
  return ErrorAtLine(line, absl::StrCat(base::ToAbsl(feature), " is not supported"));
}

}  // namespace pagoda::text::jinja
