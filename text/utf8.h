#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::text {

// One step of reading UTF-8 as Unicode's table 3-7 defines it: overlong forms, surrogates and
// values past U+10FFFF are bad.
struct Utf8Unit {
  enum class Kind : std::uint8_t {
    kCharacter,   // `length` bytes that are `code_point`
    kBad,         // `length` bytes, a maximal subpart: one U+FFFD stands for all of them
    kUnfinished,  // `length` bytes, all that is left: the start of a character whose rest is not
                  // here
  };
  Kind kind = Kind::kBad;
  std::uint32_t length = 0;
  char32_t code_point = 0;
};

// Reads the first unit of `bytes`. Requires: not empty.
Utf8Unit ReadUtf8(std::string_view bytes);

// The offset of the first byte that is not part of valid UTF-8; nothing when all of it is.
std::optional<std::size_t> FirstBadUtf8(std::string_view bytes);

// U+FFFD.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace pagoda::text
