#include "text/space_marks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pagoda::text {
namespace {

using Range = AddedTokens::Range;

// The text, then each range as the part of it that it covers.
std::string Shown(const MarkedStretch& marked) {
  std::string all = marked.text;
  for (const Range& range : marked.control_ranges) {
    all += "|" + marked.text.substr(range.begin, range.end - range.begin);
  }
  return all;
}

TEST(SpaceMarks, EachSpaceIsAMarkAndBack) {
  EXPECT_EQ(MarkSpaces(" a  b\t"), "▁a▁▁b\t");
  EXPECT_EQ(UnmarkSpaces("▁a▁▁b\t"), " a  b\t");
  EXPECT_EQ(UnmarkSpaces("\xE2\x96\x82\xE2\x96"), "\xE2\x96\x82\xE2\x96");
}

TEST(SpaceMarks, RangesMoveWithTheirText) {
  const std::vector<Range> ranges = {{.begin = 2, .end = 5}, {.begin = 7, .end = 8}};
  EXPECT_EQ(Shown(MarkStretch("", "a b cd e", ranges)), "a▁b▁cd▁e|▁b▁c|▁e");
}

TEST(SpaceMarks, ARangeTakesOneMarkBeforeItInWhoeverWroteIt) {
  EXPECT_EQ(Shown(MarkStretch(kSpaceMark, "<s>", std::vector<Range>{{.begin = 0, .end = 3}})),
            "▁<s>|▁<s>");
  EXPECT_EQ(Shown(MarkStretch("", "x  <s>", std::vector<Range>{{.begin = 3, .end = 6}})),
            "x▁▁<s>|▁<s>");
  EXPECT_EQ(Shown(MarkStretch("", "x<s>", std::vector<Range>{{.begin = 1, .end = 4}})), "x<s>|<s>");
}

TEST(SpaceMarks, RangesThatWouldOverlapAreOne) {
  const std::vector<Range> ranges = {{.begin = 0, .end = 2}, {.begin = 2, .end = 3}};
  EXPECT_EQ(Shown(MarkStretch("", "a b", ranges)), "a▁b|a▁b");
}

}  // namespace
}  // namespace pagoda::text
