#pragma once

#include <string>
#include <string_view>

namespace pagoda::base {

// `text` with every control character spelt \xNN: what a file or a caller says can then neither end
// a line of a log nor command a terminal. Other UTF-8 stays as it is.
std::string OneLine(std::string_view text);

}  // namespace pagoda::base
