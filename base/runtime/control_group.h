#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagoda::base {

// The folders of this process's control group (version 2) and of those above it, innermost first.
// Empty where there is none. `root` stands before /proc and /sys; empty but in tests.
std::vector<std::string> ControlGroupFolders(const std::string& root);

// A small file, whole; none when it cannot be read.
std::optional<std::string> ReadSmallFile(const std::string& path);
// The number that `text` begins with; none for other text, such as "max".
std::optional<std::int64_t> LeadingNumber(const std::string& text);

}  // namespace pagoda::base
