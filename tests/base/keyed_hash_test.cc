#include "base/keyed_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "tests/base/hex.h"

namespace pagoda::base {
namespace {

using pagoda::testing::Hex;

Digest256 CountingKey() {
  Digest256 key;
  std::iota(key.begin(), key.end(), std::uint8_t{0});
  return key;
}

// Expected digests: tests/oracle/block_keys.py.
TEST(KeyedHasher, EqualsBlake2bOfTaggedLengthPrefixedFields) {
  KeyedHasher none(CountingKey());
  EXPECT_EQ(Hex(none.Finish()), "4e51e7a913fc80137da52880fecca175bf81e117d5c68126dc2774033517ea0d");

  KeyedHasher three(CountingKey());
  three.AddField(1, std::string_view("abc"));
  three.AddField(2, std::uint64_t{7});
  three.AddField(3, std::span<const std::uint32_t>(std::array<std::uint32_t, 3>{1, 2, 70000}));
  EXPECT_EQ(Hex(three.Finish()),
            "90a82a5956d455b1dbfefbf5e5dbe56b5091149f742089985ee30736439c79ec");
}

TEST(KeyedHasher, MovingABoundaryBetweenFieldsChangesTheDigest) {
  KeyedHasher a(CountingKey()), b(CountingKey());
  a.AddField(1, std::string_view("ab"));
  a.AddField(1, std::string_view("c"));
  b.AddField(1, std::string_view("a"));
  b.AddField(1, std::string_view("bc"));
  EXPECT_NE(a.Finish(), b.Finish());
}

TEST(KeyedHasher, ACopyContinuesFromTheCommonBeginning) {
  KeyedHasher whole(CountingKey());
  whole.AddField(1, std::string_view("begin"));
  KeyedHasher copy = whole;
  whole.AddField(2, std::string_view("end"));
  copy.AddField(2, std::string_view("end"));
  EXPECT_EQ(whole.Finish(), copy.Finish());
}

}  // namespace
}  // namespace pagoda::base
