#include "base/one_line.h"

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(OneLine, SpellsWhatWouldEndALineOrCommandATerminal) {
  EXPECT_EQ(OneLine("llama\n2026-01-01 error all is lost"),
            "llama\\x0a2026-01-01 error all is lost");
  EXPECT_EQ(OneLine("\x1b[2Jx\r\x7f"), "\\x1b[2Jx\\x0d\\x7f");
  EXPECT_EQ(OneLine(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(OneLine("\xc2\x9b"
                    "2J"),
            "\\xc2\\x9b2J");
}

TEST(OneLine, LeavesEveryOtherTextAsItIs) {
  for (const char* const text :
       {"", "plain 'quoted' \\ text", "gr\xc3\xbc\xc3\x9f", "\xc2\xa0", "\xc2"}) {
    EXPECT_EQ(OneLine(text), text);
  }
}

}  // namespace
}  // namespace pagoda::base
