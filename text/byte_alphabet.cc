#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace pagoda::text {
namespace {

constexpr bool IsPrintableLatin1(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::int16_t kNoByte = -1;
// All the alphabet's characters lie below this: 256 bytes, 188 of them printable.
constexpr std::size_t kAlphabetEnd = 0x100 + (256 - 188);

constexpr std::array<std::int16_t, kAlphabetEnd> ByteOfCharacter() {
  std::array<std::int16_t, kAlphabetEnd> bytes{};
  bytes.fill(kNoByte);
  std::size_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes[IsPrintableLatin1(byte) ? byte : next++] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}

constexpr std::array<std::int16_t, kAlphabetEnd> kByteOfCharacter = ByteOfCharacter();

}  // namespace

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Unit unit = ReadUtf8(spelling);
    if (unit.kind != Utf8Unit::Kind::kCharacter) return std::nullopt;
    if (unit.code_point >= kAlphabetEnd) return std::nullopt;
    const std::int16_t byte = kByteOfCharacter[unit.code_point];
    if (byte == kNoByte) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    spelling.remove_prefix(unit.length);
  }
  return bytes;
}

}  // namespace pagoda::text
