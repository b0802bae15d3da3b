#include "client/figures.h"

#include <array>
#include <cstdio>
#include <iterator>

namespace pagoda::client {

std::string Grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first_digit = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string Abbreviated(std::int64_t number) {
  static constexpr std::array<const char*, 5> kUnits = {"", " k", " M", " G", " T"};
  auto value = static_cast<double>(number);
  std::size_t unit = 0;
  while ((value >= 1000.0 || value <= -1000.0) && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  return Fixed(value, unit == 0 ? 0 : 1) + kUnits[unit];
}

std::string Fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, std::size(text), "%.*f", digits, number);
  return text;
}

}  // namespace pagoda::client
