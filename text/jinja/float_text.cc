#include "text/jinja/float_text.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/check.h"

namespace pagoda::text::jinja {

std::string FloatText(double number) {
  char buffer[40];
  const auto format = [&](std::chars_format form) {
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), number, form);
    PAGODA_CHECK(error == std::errc());
    return std::string(buffer, end);
  };
  std::string text = format(std::chars_format::scientific);
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return text;
  text = format(std::chars_format::fixed);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

}  // namespace pagoda::text::jinja
