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

}  // namespace
}  // namespace pagoda::base
