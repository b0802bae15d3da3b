#include "text/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace pagoda::text {
namespace {

std::string Spelt(unsigned code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

TEST(ByteAlphabet, EachByteIsSpeltByExactlyOneCharacter) {
  std::set<std::string> bytes;
  for (unsigned c = 0; c < 0x200; ++c) {
    const auto stands_for = BytesOfSpelling(Spelt(c));
    if (!stands_for.has_value()) continue;
    EXPECT_EQ(stands_for->size(), 1u);
    EXPECT_TRUE(bytes.insert(*stands_for).second) << c;
  }
  EXPECT_EQ(bytes.size(), 256u);
}

TEST(ByteAlphabet, KnownSpellingsReadAsTheirBytes) {
  EXPECT_EQ(BytesOfSpelling("\u0120the"), " the");
  EXPECT_EQ(BytesOfSpelling("\u010A"), "\n");
  EXPECT_EQ(BytesOfSpelling("\u00E2\u0124\u00AC"), "\u20AC");
  EXPECT_EQ(BytesOfSpelling("\u0143"), "\xAD");
  EXPECT_EQ(BytesOfSpelling(""), "");
}

TEST(ByteAlphabet, OtherCharactersAndBadUtf8AreRefused) {
  EXPECT_EQ(BytesOfSpelling("a b"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\u0144"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\u00AD"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("a\xFF"), std::nullopt);
}

}  // namespace
}  // namespace pagoda::text
