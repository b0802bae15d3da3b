#include "text/jinja/marked_string.h"

#include "base/check.h"

namespace pagoda::text::jinja {

MarkedString MarkedString::FromTemplate(std::string_view text) {
  MarkedString made;
  made.Append(text, false);
  return made;
}

MarkedString MarkedString::FromInput(std::string_view text) {
  MarkedString made;
  made.Append(text, true);
  return made;
}

void MarkedString::Append(std::string_view text, bool from_input) {
  if (text.empty()) return;
  const std::size_t begin = bytes.size();
  bytes += text;
  if (!from_input) return;
  if (!input.empty() && input.back().end == begin) {
    input.back().end = bytes.size();
  } else {
    input.push_back({begin, bytes.size()});
  }
}

void MarkedString::AppendRange(const MarkedString& other, std::size_t begin, std::size_t end) {
  PAGODA_CHECK(begin <= end);
  PAGODA_CHECK(end <= other.bytes.size());
  PAGODA_CHECK(&other != this);
  other.ForEachRun(begin, end,
                   [&](std::string_view text, bool from_input) { Append(text, from_input); });
}

MarkedString MarkedString::Substring(std::size_t begin, std::size_t end) const {
  MarkedString made;
  made.AppendRange(*this, begin, end);
  return made;
}

MarkedText MarkedString::ToMarkedText() const {
  MarkedText text;
  ForEachRun(0, bytes.size(), [&](std::string_view run, bool from_input) {
    text.parts.push_back({std::string(run), from_input});
  });
  return text;
}

}  // namespace pagoda::text::jinja
