// libFuzzer entry: any bytes at all are either refused or give a document that can be walked whole,
// within its limits and twice the same.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "formats/json_document.h"

namespace {

using pagoda::formats::JsonDocument;
using pagoda::formats::JsonValue;

constexpr std::size_t kMaxDepth = 64;

// Recursion follows the nesting, which the reader has bounded.
std::size_t Walk(const JsonValue& value, std::size_t depth) {
  PAGODA_CHECK(depth <= kMaxDepth);
  std::size_t sum = static_cast<std::size_t>(value.kind());
  if (const auto text = value.AsString(); text.has_value()) sum += text->size();
  if (value.AsInteger().has_value()) PAGODA_CHECK(value.AsNumber().has_value());
  for (const JsonValue& element : value.Elements()) sum += Walk(element, depth + 1);
  for (const auto& member : value.Members()) {
    PAGODA_CHECK(value.Find(member.key).has_value());
    sum += member.key.size() + Walk(member.value, depth + 1);
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly the right size: one byte read past the end is then a report.
  const std::vector<char> exact(data, data + size);
  const std::string_view text(exact.data(), exact.size());
  const auto document = JsonDocument::Parse(text, "fuzz", {.max_depth = kMaxDepth});
  if (!document.ok()) return 0;
  const auto again = JsonDocument::Parse(text, "fuzz", {.max_depth = kMaxDepth});
  PAGODA_CHECK(again.ok());
  PAGODA_CHECK(Walk((*document)->root(), 0) == Walk((*again)->root(), 0));
  return 0;
}
