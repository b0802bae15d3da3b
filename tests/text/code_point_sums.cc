#include "tests/text/code_point_sums.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace pagoda::text {
namespace {

constexpr int kPerSum = 4096;

std::string Utf8(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | (c >> 6)), byte(0x80 | (c & 63))};
  if (c < 0x10000) {
    return {byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 63)), byte(0x80 | (c & 63))};
  }
  return {byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 63)), byte(0x80 | ((c >> 6) & 63)),
          byte(0x80 | (c & 63))};
}

std::array<std::uint32_t, 256> CrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
    table[byte] = crc;
  }
  return table;
}

std::vector<std::uint32_t> ReadSums(const std::string& golden) {
  std::ifstream file(PAGODA_SOURCE_DIR "/tests/oracle/goldens/" + golden, std::ios::binary);
  EXPECT_TRUE(file.good()) << golden;
  const std::string data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::uint32_t> sums(data.size() / sizeof(std::uint32_t));
  std::memcpy(sums.data(), data.data(), sums.size() * sizeof(std::uint32_t));
  return sums;
}

}  // namespace

std::uint32_t Crc32(std::span<const unsigned char> bytes) {
  static const std::array<std::uint32_t, 256> table = CrcTable();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const unsigned char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF];
  return ~crc;
}

void CompareCodePointSums(const std::string& golden, std::string_view context,
                          const std::function<std::uint32_t(std::string_view)>& sum) {
  const std::vector<std::uint32_t> wanted = ReadSums(golden);
  char32_t c = 0;
  for (std::size_t block = 0; block < wanted.size(); ++block) {
    std::string text;
    const char32_t first = c;
    for (int i = 0; i < kPerSum && c <= 0x10FFFF; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      ++i;
      const std::string character = Utf8(c);
      for (const char each : context) each == '@' ? text += character : text += each;
    }
    EXPECT_EQ(sum(text), wanted[block])
        << golden << ": code points from " << std::hex << static_cast<std::uint32_t>(first);
  }
  EXPECT_EQ(c, 0x110000U);
}

}  // namespace pagoda::text
