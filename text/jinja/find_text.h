#pragma once

#include <cstddef>
#include <string_view>

namespace pagoda::text::jinja {

// The first place at or after `from` where `needle` begins, or npos, in time linear in both
// lengths: the library's find is quadratic on input made for it, and both texts may be a caller's.
std::size_t FindText(std::string_view haystack, std::string_view needle, std::size_t from);

}  // namespace pagoda::text::jinja
