#pragma once

#include <cstdint>
#include <string>

namespace pagoda::client {

// Numbers as a person reads them.

// "134,515,008".
std::string Grouped(std::int64_t number);
// "134.5 M".
std::string Abbreviated(std::int64_t number);
// With this many digits after the point.
std::string Fixed(double number, int digits);

}  // namespace pagoda::client
