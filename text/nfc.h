#pragma once

#include <string>
#include <string_view>

namespace pagoda::text {

// Unicode's normal form C as the models' own tokenizers make it: by the tables of Unicode 9, so
// that later characters stay as and where they are. Time is linear in the text and n log n in its
// longest run of combining marks. Requires: valid UTF-8.
std::string NormalizeNfc(std::string_view text);

// True when the text is surely in form C already: it has no character from U+0300 on.
bool IsPlainlyNfc(std::string_view text);

}  // namespace pagoda::text
