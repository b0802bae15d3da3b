#include "formats/bounded_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace pagoda::formats {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(CheckedArithmetic, GivesNothingExactlyWhenTheResultDoesNotFit) {
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedMultiply(1ull << 32, (1ull << 32) - 1), (kMax >> 32 << 32));
  EXPECT_EQ(CheckedMultiply(1ull << 33, 1ull << 33), std::nullopt);
  EXPECT_EQ(CheckedMultiply(kMax, 0), 0u);
}

TEST(BoundedReader, ReadsLittleEndianNumbersInOrder) {
  const std::array<std::byte, 6> bytes = {std::byte{1}, std::byte{2}, std::byte{3},
                                          std::byte{4}, std::byte{5}, std::byte{6}};
  BoundedReader reader(bytes);
  std::uint32_t word = 0;
  std::uint16_t half = 0;
  ASSERT_TRUE(reader.TryRead(word));
  ASSERT_TRUE(reader.TryRead(half));
  EXPECT_EQ(word, 0x04030201u);
  EXPECT_EQ(half, 0x0605u);
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(BoundedReader, ARefusedReadLeavesTheCursorWhereItWas) {
  const std::array<std::byte, 3> bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  BoundedReader reader(bytes);
  std::uint32_t word = 7;
  std::string_view text;
  EXPECT_FALSE(reader.TryRead(word));
  EXPECT_FALSE(reader.TryReadText(kMax, text));
  EXPECT_FALSE(reader.TryReadText(4, text));
  EXPECT_EQ(reader.offset(), 0u);
  ASSERT_TRUE(reader.TryReadText(3, text));
  EXPECT_EQ(text, "abc");
}

}  // namespace
}  // namespace pagoda::formats
