#include "text/jinja/find_text.h"

#include <vector>

namespace pagoda::text::jinja {

// Knuth, Morris, Pratt: border[i] is the length of the longest proper prefix of the needle that
// also ends at needle[i].
std::size_t FindText(std::string_view haystack, std::string_view needle, std::size_t from) {
  if (needle.empty()) return from <= haystack.size() ? from : std::string_view::npos;
  std::vector<std::size_t> border(needle.size(), 0);
  for (std::size_t i = 1, length = 0; i < needle.size(); ++i) {
    while (length > 0 && needle[i] != needle[length]) length = border[length - 1];
    if (needle[i] == needle[length]) ++length;
    border[i] = length;
  }
  for (std::size_t i = from, length = 0; i < haystack.size(); ++i) {
    while (length > 0 && haystack[i] != needle[length]) length = border[length - 1];
    if (haystack[i] == needle[length]) ++length;
    if (length == needle.size()) return i + 1 - length;
  }
  return std::string_view::npos;
}

}  // namespace pagoda::text::jinja
