#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace pagoda::testing {

// "0a1b..." of bytes, as the oracle scripts print them.
inline std::string Hex(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace pagoda::testing
