#include "base/one_line.h"

#include "absl/strings/str_cat.h"

namespace pagoda::base {
namespace {

void AppendSpelt(std::string& out, unsigned char byte) {
  absl::StrAppend(&out, "\\x", absl::Hex(byte, absl::kZeroPad2));
}

}  // namespace

std::string OneLine(std::string_view text) {
  constexpr unsigned char kFirstPrinted = 0x20, kDelete = 0x7f;
  // U+0080 to U+009F are control characters too; in UTF-8 they are this byte and one below 0xa0.
  constexpr unsigned char kLead = 0xc2, kEnd = 0xa0;
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : kEnd;
    if (byte < kFirstPrinted || byte == kDelete) {
      AppendSpelt(out, byte);
    } else if (byte == kLead && next < kEnd) {
      AppendSpelt(out, byte);
      AppendSpelt(out, next);
      ++i;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace pagoda::base
