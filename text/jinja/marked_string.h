#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/marked_text.h"

namespace pagoda::text::jinja {

// Text whose caller-made bytes are known. Every operation of the engine that moves bytes moves
// their marks with them, so that no way of cutting and joining turns a caller's words into a
// template's.
struct MarkedString {
  struct Span {
    std::size_t begin = 0, end = 0;
  };
  std::string bytes;
  std::vector<Span> input;  // the caller's bytes: ascending, not empty, not touching

  static MarkedString FromTemplate(std::string_view text);
  static MarkedString FromInput(std::string_view text);

  void Append(std::string_view text, bool from_input);
  void Append(const MarkedString& other) { AppendRange(other, 0, other.bytes.size()); }
  // Requires: begin <= end <= other.bytes.size(), and `other` is not this.
  void AppendRange(const MarkedString& other, std::size_t begin, std::size_t end);
  MarkedString Substring(std::size_t begin, std::size_t end) const;
  MarkedText ToMarkedText() const;
  // What holding it costs, for the bound on working bytes.
  std::size_t held_bytes() const {
    return sizeof(*this) + bytes.size() + input.size() * sizeof(Span);
  }

  // Calls visit(text, from_input) for each run of equally marked bytes of [begin, end), in order.
  template <typename Visit>
  void ForEachRun(std::size_t begin, std::size_t end, Visit visit) const {
    const std::string_view all = bytes;
    auto span = std::lower_bound(input.begin(), input.end(), begin,
                                 [](const Span& s, std::size_t at) { return s.end <= at; });
    while (begin < end) {
      if (span == input.end() || span->begin >= end)
        return visit(all.substr(begin, end - begin), false);
      if (begin < span->begin) visit(all.substr(begin, span->begin - begin), false);
      begin = std::max(begin, span->begin);
      const std::size_t stop = std::min(span->end, end);
      visit(all.substr(begin, stop - begin), true);
      begin = stop;
      ++span;
    }
  }
};

}  // namespace pagoda::text::jinja
