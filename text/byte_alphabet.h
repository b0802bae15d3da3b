#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::text {

// The byte alphabet of GPT-2's vocabularies: each of the 256 bytes is spelt as one printable
// character. Printable bytes of Latin-1 stand for themselves, the others, in order, for U+0100 and
// on.

// The bytes that `spelling` stands for; nothing when a character is not in the alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace pagoda::text
