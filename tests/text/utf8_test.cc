#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pagoda::text {
namespace {

// Written from the definition of the encoding form, not from the table the reader uses.
std::string EncodeByDefinition(char32_t c) {
  std::string out;
  const auto byte = [&out](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | (c >> 6));
    byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | (c >> 12));
    byte(0x80 | ((c >> 6) & 0x3F));
    byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | (c >> 18));
    byte(0x80 | ((c >> 12) & 0x3F));
    byte(0x80 | ((c >> 6) & 0x3F));
    byte(0x80 | (c & 0x3F));
  }
  return out;
}

TEST(Utf8, EveryCodePointIsReadBackAndEverySurrogateIsBad) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    const std::string bytes = EncodeByDefinition(c);
    const Utf8Unit unit = ReadUtf8(bytes + "\x80");
    if (c >= 0xD800 && c <= 0xDFFF) {
      ASSERT_EQ(unit.kind, Utf8Unit::Kind::kBad) << std::hex << static_cast<unsigned>(c);
      ASSERT_EQ(unit.length, 1u);
    } else {
      ASSERT_EQ(unit.kind, Utf8Unit::Kind::kCharacter) << std::hex << static_cast<unsigned>(c);
      ASSERT_EQ(unit.length, bytes.size());
      ASSERT_EQ(unit.code_point, c);
    }
  }
}

TEST(Utf8, NoOtherFourBytesAreACharacter) {
  // All two-byte starts, each with continuation bytes behind: what is accepted must be what the
  // definition encodes to.
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::string bytes = {static_cast<char>(first), static_cast<char>(second), '\x80',
                                 '\x80'};
      const Utf8Unit unit = ReadUtf8(bytes);
      if (unit.kind != Utf8Unit::Kind::kCharacter) continue;
      ASSERT_EQ(EncodeByDefinition(unit.code_point), bytes.substr(0, unit.length));
      ASSERT_FALSE(unit.code_point >= 0xD800 && unit.code_point <= 0xDFFF);
      ASSERT_LE(unit.code_point, char32_t{0x10FFFF});
    }
  }
}

TEST(Utf8, AnUnfinishedCharacterIsToldFromABrokenOne) {
  EXPECT_EQ(ReadUtf8("\xF0\x9F\x90").kind, Utf8Unit::Kind::kUnfinished);
  EXPECT_EQ(ReadUtf8("\xF0\x9F\x90").length, 3u);
  EXPECT_EQ(ReadUtf8("\xF0\x9F\x90x").kind, Utf8Unit::Kind::kBad);
  EXPECT_EQ(ReadUtf8("\xF0\x9F\x90x").length, 3u);
  EXPECT_EQ(ReadUtf8("\xF0\x8F").kind, Utf8Unit::Kind::kBad);
  EXPECT_EQ(ReadUtf8("\xF0\x8F").length, 1u);
}

TEST(Utf8, TheFirstBadByteIsNamed) {
  EXPECT_EQ(FirstBadUtf8(""), std::nullopt);
  EXPECT_EQ(FirstBadUtf8("na\xC3\xAFve \xF0\x9F\x90\xA7"), std::nullopt);
  EXPECT_EQ(FirstBadUtf8("ab\xFF"), 2u);
  EXPECT_EQ(FirstBadUtf8("ab\xE2\x82"), 2u);
  EXPECT_EQ(FirstBadUtf8("\xC3\xAF\xC0\x80"), 2u);
}

TEST(Utf8DeathTest, NothingCannotBeRead) { EXPECT_DEATH(ReadUtf8(""), "check failed"); }

}  // namespace
}  // namespace pagoda::text
