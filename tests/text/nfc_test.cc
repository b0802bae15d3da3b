#include "text/nfc.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::text {
namespace {

TEST(Nfc, ComposesWhatCanBeComposedAndOrdersMarks) {
  EXPECT_EQ(NormalizeNfc("e\u0301"), "\u00e9");
  EXPECT_EQ(NormalizeNfc("\u212b"), "\u00c5");               // the sign of a unit
  EXPECT_EQ(NormalizeNfc("\u1100\u1161\u11a8"), "\uac01");   // one syllable of Hangul
  EXPECT_EQ(NormalizeNfc("a\u0301\u0323"), "\u1ea1\u0301");  // the mark below goes first
  EXPECT_EQ(NormalizeNfc("\u0958"), "\u0915\u093c");         // excluded from composition
  EXPECT_EQ(NormalizeNfc("plain \u00fc"), "plain \u00fc");
  EXPECT_EQ(NormalizeNfc(""), "");
  // A mark of Unicode 14 is to the models' tokenizers no mark.
  EXPECT_EQ(NormalizeNfc("e\u1ac5\u0301\u0323"), "e\u1ac5\u0323\u0301");
}

TEST(Nfc, ATextBelowU0300IsKnownToBeInFormC) {
  EXPECT_TRUE(IsPlainlyNfc("abc \u00fc\u02ff"));
  EXPECT_FALSE(IsPlainlyNfc("e\u0301"));
  EXPECT_FALSE(IsPlainlyNfc("\u4f60"));
}

// Sorting marks by exchanging neighbours would take hours here: the test's time limit is the
// assertion.
TEST(Nfc, AMegabyteOfMarksInTheWrongOrderIsNormalised) {
  std::string marks;
  for (int i = 0; i < 250'000; ++i) marks += "\u0315\u0323";
  const std::string form = NormalizeNfc("x" + marks);
  EXPECT_EQ(form.size(), marks.size() + 1);
  EXPECT_EQ(form.find("\u0315"), 1 + marks.size() / 2);
}

}  // namespace
}  // namespace pagoda::text
