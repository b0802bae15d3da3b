#include "text/jinja/unicode_space.h"

#include "base/check.h"

namespace pagoda::text::jinja {

std::size_t LeadingSpaceBytes(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Unit unit = ReadUtf8(text.substr(bytes));
    if (!IsSpace(unit.code_point)) break;
    bytes += unit.length;
  }
  return bytes;
}

std::size_t TrailingSpaceBytes(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view last = LastCharacter(rest);
    if (!IsSpace(ReadUtf8(last).code_point)) break;
    rest.remove_suffix(last.size());
  }
  return text.size() - rest.size();
}

std::string_view LastCharacter(std::string_view text) {
  PAGODA_CHECK(!text.empty());
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0u) == 0x80u) --begin;
  return text.substr(begin);
}

}  // namespace pagoda::text::jinja
