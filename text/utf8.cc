#include "text/utf8.h"

#include "base/check.h"

namespace pagoda::text {
namespace {

// What a lead byte promises. Only the second byte's range depends on the lead; that one range is
// what keeps out overlong forms, surrogates and values past U+10FFFF.
struct Lead {
  std::uint32_t length = 0;  // 0: not a lead byte
  unsigned char second_low = 0x80;
  unsigned char second_high = 0xBF;
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {.length = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.length = 2};
  if (byte == 0xE0) return {.length = 3, .second_low = 0xA0};
  if (byte == 0xED) return {.length = 3, .second_high = 0x9F};
  if (byte < 0xF0) return {.length = 3};
  if (byte == 0xF0) return {.length = 4, .second_low = 0x90};
  if (byte < 0xF4) return {.length = 4};
  if (byte == 0xF4) return {.length = 4, .second_high = 0x8F};
  return {};
}

constexpr std::uint32_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};

}  // namespace

Utf8Unit ReadUtf8(std::string_view bytes) {
  PAGODA_CHECK(!bytes.empty());
  const auto first = static_cast<unsigned char>(bytes[0]);
  const Lead lead = LeadOf(first);
  if (lead.length == 0) return {.kind = Utf8Unit::Kind::kBad, .length = 1};
  char32_t code_point = first & kLeadMask[lead.length];
  for (std::uint32_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {.kind = Utf8Unit::Kind::kUnfinished, .length = i};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {.kind = Utf8Unit::Kind::kBad, .length = i};
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  return {.kind = Utf8Unit::Kind::kCharacter, .length = lead.length, .code_point = code_point};
}

std::optional<std::size_t> FirstBadUtf8(std::string_view bytes) {
  std::size_t offset = 0;
  while (offset < bytes.size()) {
    if (static_cast<unsigned char>(bytes[offset]) < 0x80) {
      ++offset;
      continue;
    }
    const Utf8Unit unit = ReadUtf8(bytes.substr(offset));
    if (unit.kind != Utf8Unit::Kind::kCharacter) return offset;
    offset += unit.length;
  }
  return std::nullopt;
}

}  // namespace pagoda::text
