#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pagoda::server {

// A line of a file of sections `[NAME]` with lines `key = value` under them; `#` begins a comment.
// Views into the text that was split.
struct SectionLine {
  std::int64_t number = 0;
  std::string_view section = {};          // of a line that opens one
  std::string_view key = {}, value = {};  // of any other; the value without its quotes
};

inline constexpr std::size_t kMaxSectionNameBytes = 64;
// 1 to 64 letters, digits, '-', '_' and '.'.
bool IsSectionName(std::string_view name);

// Everything that is neither is refused (InvalidArgument), with `file` and the line, never with
// what stands there: it could be a secret in the wrong place. Blank lines are left out.
absl::StatusOr<std::vector<SectionLine>> SplitSections(std::string_view text,
                                                       std::string_view file);

// The whole file that a flag names. Refuses what cannot be read, is empty or larger than 1 MiB.
absl::StatusOr<std::string> ReadNamedFile(std::string_view flag, const std::string& path);

}  // namespace pagoda::server
