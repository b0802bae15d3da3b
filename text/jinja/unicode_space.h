#pragma once

#include <string_view>

#include "text/utf8.h"

namespace pagoda::text::jinja {

// Blank space as Python's str.isspace() has it.
constexpr bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

// The number of bytes of blank space at the start and at the end of valid UTF-8.
std::size_t LeadingSpaceBytes(std::string_view text);
std::size_t TrailingSpaceBytes(std::string_view text);
// The last character of valid UTF-8. Requires: not empty.
std::string_view LastCharacter(std::string_view text);

}  // namespace pagoda::text::jinja
