#include "text/text_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::string Streamed(const std::vector<std::string>& pieces) {
  TextStream stream;
  std::string text;
  for (const std::string& piece : pieces) {
    stream.Append(piece);
    text += stream.Take(kNoLimit);
  }
  return text + stream.Finish(kNoLimit);
}

// The same rule, stated the slow way: at each place take the longest run of bytes that some
// well-formed character starts with; a whole character is kept, anything else is one U+FFFD.
// "Starts with" is decided by trying every continuation.
bool IsCharacter(std::string_view s) {
  const auto at = [&s](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  if (s.size() == 1) return at(0) < 0x80;
  for (std::size_t i = 1; i < s.size(); ++i) {
    if ((at(i) & 0xC0) != 0x80) return false;
  }
  unsigned value = 0;
  if (s.size() == 2 && (at(0) & 0xE0) == 0xC0) value = at(0) & 0x1F;
  if (s.size() == 3 && (at(0) & 0xF0) == 0xE0) value = at(0) & 0x0F;
  if (s.size() == 4 && (at(0) & 0xF8) == 0xF0) value = at(0) & 0x07;
  for (std::size_t i = 1; i < s.size(); ++i) value = (value << 6) | (at(i) & 0x3F);
  const unsigned lowest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool lead_fits = (s.size() == 2 && (at(0) & 0xE0) == 0xC0) ||
                         (s.size() == 3 && (at(0) & 0xF0) == 0xE0) ||
                         (s.size() == 4 && (at(0) & 0xF8) == 0xF0);
  return lead_fits && value >= lowest[s.size()] && value <= 0x10FFFF &&
         !(value >= 0xD800 && value <= 0xDFFF);
}

// Continuations that, between them, reach every range a second byte can lie in; later bytes are
// free.
bool StartsACharacter(std::string_view s) {
  std::string grown(s);
  for (const char second : {'\x80', '\x90', '\xA0', '\xBF'}) {
    std::string tried = grown;
    while (tried.size() <= 4) {
      if (IsCharacter(tried)) return true;
      tried.push_back(tried.size() == 1 ? second : '\x80');
    }
  }
  return false;
}

std::string RepairedSlowly(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    std::size_t length = 0;
    while (length < std::min<std::size_t>(4, bytes.size()) &&
           StartsACharacter(bytes.substr(0, length + 1))) {
      ++length;
      if (IsCharacter(bytes.substr(0, length))) break;
    }
    const std::string_view part = bytes.substr(0, std::max<std::size_t>(length, 1));
    text += IsCharacter(part) ? std::string(part) : std::string("\xEF\xBF\xBD");
    bytes.remove_prefix(part.size());
  }
  return text;
}

TEST(TextStream, A2_EachBadPartBecomesOneReplacementCharacter) {
  EXPECT_EQ(Streamed({"\xEC\x84", "\xFF", "a", "\xE2\x82", "b"}), "\uFFFD\uFFFDa\uFFFDb");
}

TEST(TextStream, A3_ACharacterCutByTheEndOfTheReplyBecomesOneReplacementCharacter) {
  EXPECT_EQ(Streamed({"\xF0\x9F\x90"}), "\uFFFD");
  TextStream stream;
  stream.Append("ok\xF0\x9F\x90");
  EXPECT_EQ(stream.Take(kNoLimit), "ok");
  EXPECT_EQ(stream.Finish(5), "\uFFFD");
}

TEST(TextStream, A3_TheLastByteCompletesTheCharacterInstead) {
  EXPECT_EQ(Streamed({"\xF0\x9F\x90", "\xA7"}), "\U0001F427");
}

TEST(TextStream, A4_BadBytesInTheMiddleAreReplacedAndAllElseIsKept) {
  EXPECT_EQ(Streamed({"ok ", "\xE6\x80=", " end"}), "ok \uFFFD= end");
}

TEST(TextStream, A4_OverlongFormsAndSurrogatesAreReplacedByteByByte) {
  EXPECT_EQ(Streamed({"\xC0\x80", "\xED\xA0\x80"}), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(TextStream, AnUnfinishedCharacterIsHeldUntilItIsDecided) {
  TextStream stream;
  stream.Append("a\xE2");
  EXPECT_EQ(stream.Take(kNoLimit), "a");
  stream.Append("\x82");
  EXPECT_EQ(stream.Take(kNoLimit), "");
  stream.Append("\xAC!");
  EXPECT_EQ(stream.Take(kNoLimit), "\u20AC!");
  EXPECT_EQ(stream.Finish(kNoLimit), "");
}

TEST(TextStream, NothingPastTheLimitIsShown) {
  TextStream stream;
  stream.Append("hello STOP");
  EXPECT_EQ(stream.Take(6), "hello ");
  EXPECT_EQ(stream.Take(6), "");
  EXPECT_EQ(stream.Take(3), "");
  EXPECT_EQ(stream.Finish(6), "");
}

TEST(TextStream, BytesPastTheLimitDoNotDecideACharacterBeforeIt) {
  TextStream stream;
  stream.Append("a\xE2\x82STOP");
  EXPECT_EQ(stream.Take(3), "a");
  EXPECT_EQ(stream.Finish(3), "\uFFFD");
}

TEST(TextStream, ALimitInsideACharacterShowsItOnlyWhenTheLimitPassesIt) {
  TextStream stream;
  stream.Append("\u20ACx");
  EXPECT_EQ(stream.Take(2), "");
  EXPECT_EQ(stream.Take(3), "\u20AC");
  EXPECT_EQ(stream.Finish(4), "x");
}

TEST(TextStream, HoweverTheBytesAreCutAndLimitedTheTextIsTheRepairOfTheWhole) {
  const unsigned seed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) { return random() % n; };
  const std::vector<std::string> fragments = {"a",
                                              "\xE2\x82\xAC",
                                              "\xF0\x9F\x90\xA7",
                                              "\xF0\x9F",
                                              "\xE2\x82",
                                              "\xC3",
                                              "\xFF",
                                              "\x80",
                                              "\xED\xA0\x80",
                                              "\xF4\x90",
                                              "\xE0\x80",
                                              "\xF0\x80",
                                              "\xC1",
                                              "\xF4\x8F\xBF\xBF"};
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (std::size_t n = below(12); n > 0; --n) bytes += fragments[below(fragments.size())];
    const std::size_t end = bytes.empty() ? 0 : below(bytes.size() + 1);
    TextStream stream;
    std::string text;
    std::size_t limit = 0;
    for (std::size_t appended = 0; appended < bytes.size();) {
      const std::size_t size = std::min(bytes.size() - appended, below(5));
      stream.Append(std::string_view(bytes).substr(appended, size));
      appended += size;
      limit = std::min({end, std::max(limit, appended - std::min(appended, below(4)))});
      text += stream.Take(limit);
    }
    text += stream.Finish(end);
    ASSERT_EQ(text, RepairedSlowly(std::string_view(bytes).substr(0, end))) << "round " << round;
  }
}

TEST(TextStreamDeathTest, AnEndBeforeWhatWasGivenOutAborts) {
  TextStream stream;
  stream.Append("abc");
  EXPECT_EQ(stream.Take(3), "abc");
  EXPECT_DEATH(stream.Finish(2), "already given out");
}

TEST(TextStreamDeathTest, NothingFollowsTheEnd) {
  TextStream stream;
  EXPECT_EQ(stream.Finish(0), "");
  EXPECT_DEATH(stream.Append("x"), "check failed");
}

TEST(TextStream, A6_ASpaceAtTheVeryStartIsDroppedOnceAndStillCounted) {
  for (const std::string first : {" ", " D", " Daily"}) {
    TextStream stream(TextStream::FirstSpace::kDropped);
    stream.Append(first);
    std::string text = stream.Take(kNoLimit);
    EXPECT_EQ(text, first.substr(1));
    stream.Append("  new");
    text += stream.Take(first.size() + 2);
    EXPECT_EQ(text, first.substr(1) + "  ");
    EXPECT_EQ(text + stream.Finish(first.size() + 4), first.substr(1) + "  ne");
  }
  TextStream stream(TextStream::FirstSpace::kDropped);
  stream.Append("x y");
  EXPECT_EQ(stream.Finish(kNoLimit), "x y");
}

}  // namespace
}  // namespace pagoda::text
