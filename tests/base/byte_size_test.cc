#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(ByteSize, ReadsNumbersWithUnits) {
  EXPECT_EQ(*ParseByteSize("1024"), 1024);
  EXPECT_EQ(*ParseByteSize("1.5GiB"), 3LL << 29);
  EXPECT_EQ(*ParseByteSize("2 G"), 2LL << 30);
  EXPECT_EQ(*ParseByteSize("2GB"), 2'000'000'000);
  EXPECT_EQ(*ParseByteSize("0"), 0);
}

TEST(ByteSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", "G", "-1", "1.5XiB", "nan", "inf", "1e300", "5 GiB extra"}) {
    EXPECT_FALSE(ParseByteSize(text).ok()) << text;
  }
}

TEST(ByteSize, PrintsOneUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(3LL << 40), "3.0 TiB");
}

// Whoever does as advised has enough, and not much more.
TEST(ByteSize, AdviceIsNeverLessThanWhatIsNeeded) {
  EXPECT_EQ(FormatBytesUp(0), "0 B");
  EXPECT_EQ(FormatBytesUp(1023), "1023 B");
  EXPECT_EQ(FormatBytesUp(3LL << 20), "3.0 MiB");
  EXPECT_EQ(FormatBytesUp((3LL << 20) + 1), "3.1 MiB");
  for (std::int64_t bytes = 1; bytes < (1LL << 50); bytes = bytes * 5 / 3 + 1) {
    const auto advised = ParseByteSize(FormatBytesUp(bytes));
    ASSERT_TRUE(advised.ok()) << advised.status();
    EXPECT_GE(*advised, bytes);
    EXPECT_LE(static_cast<double>(*advised), 1.11 * static_cast<double>(bytes));
  }
}

}  // namespace
}  // namespace pagoda::base
