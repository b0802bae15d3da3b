#pragma once

#include <string>

namespace pagoda::text::jinja {

// A finite number as Python's repr() spells it: the fewest digits that read back as the same
// number, with an exponent below 1e-4 and from 1e16 on.
std::string FloatText(double number);

}  // namespace pagoda::text::jinja
