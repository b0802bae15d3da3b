#include "base/token_digest.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::base {
namespace {

// FIPS 180-4's own examples.
TEST(TokenDigest, IsSha256AsOtherToolsPrintIt) {
  EXPECT_EQ(DigestToHex(DigestOfToken("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(DigestToHex(DigestOfToken("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(TokenDigest, HexIsReadInEitherCaseAndNothingElseIs) {
  const std::string hex = DigestToHex(DigestOfToken("token"));
  ASSERT_TRUE(DigestFromHex(hex).has_value());
  EXPECT_EQ(DigestFromHex(hex), DigestOfToken("token"));
  std::string upper = hex;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'f' ? c - 'a' + 'A' : c);
  EXPECT_EQ(DigestFromHex(upper), DigestOfToken("token"));
  for (const std::string& bad : {hex.substr(1), hex + "0", "g" + hex.substr(1), std::string()}) {
    EXPECT_FALSE(DigestFromHex(bad).has_value()) << bad;
  }
}

TEST(TokenDigest, ATokenIsShortAndOfOneAlphabet) {
  for (const std::string& good : {std::string("a"), std::string("aZ09-._~+/"), std::string("ab=="),
                                  std::string(kMaxTokenBytes, 'x')}) {
    EXPECT_TRUE(IsTokenText(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("="), std::string("a=b"), std::string("a b"), std::string("a\n"),
        std::string("a\0", 2), std::string("\xC3\xA4"), std::string(kMaxTokenBytes + 1, 'x')}) {
    EXPECT_FALSE(IsTokenText(bad)) << bad;
  }
}

TEST(TokenDigest, ADifferenceInAnyBitIsSeen) {
  const TokenDigest digest = DigestOfToken("token");
  EXPECT_TRUE(SameDigest(digest, DigestOfToken("token")));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    TokenDigest other = digest;
    other[bit / 8] = static_cast<std::uint8_t>(other[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_FALSE(SameDigest(digest, other)) << bit;
  }
}

}  // namespace
}  // namespace pagoda::base
