#include "text/space_marks.h"

#include <algorithm>

namespace pagoda::text {
namespace {

void AppendMarked(std::string_view text, std::string& marked) {
  for (const char c : text) {
    if (c == ' ') {
      marked += kSpaceMark;
    } else {
      marked += c;
    }
  }
}

}  // namespace

std::string MarkSpaces(std::string_view text) {
  std::string marked;
  AppendMarked(text, marked);
  return marked;
}

std::string UnmarkSpaces(std::string_view spelling) {
  std::string text;
  while (!spelling.empty()) {
    const bool is_mark = spelling.starts_with(kSpaceMark);
    text += is_mark ? ' ' : spelling.front();
    spelling.remove_prefix(is_mark ? kSpaceMark.size() : 1);
  }
  return text;
}

MarkedStretch MarkStretch(std::string_view prefix, std::string_view stretch,
                          std::span<const AddedTokens::Range> control_ranges) {
  MarkedStretch marked;
  marked.text.reserve(prefix.size() + stretch.size() + stretch.size() / 2);
  marked.text = prefix;
  std::vector<AddedTokens::Range>& ranges = marked.control_ranges;
  std::size_t at = 0;
  for (const AddedTokens::Range& range : control_ranges) {
    AppendMarked(stretch.substr(at, range.begin - at), marked.text);
    std::size_t begin = marked.text.size();
    if (marked.text.ends_with(kSpaceMark)) begin -= kSpaceMark.size();
    AppendMarked(stretch.substr(range.begin, range.end - range.begin), marked.text);
    at = range.end;
    if (!ranges.empty() && ranges.back().end > begin) {
      ranges.back().end = marked.text.size();  // nothing lies between the two
    } else {
      ranges.push_back({.begin = begin, .end = marked.text.size()});
    }
  }
  AppendMarked(stretch.substr(at), marked.text);
  return marked;
}

}  // namespace pagoda::text
