// Every code point through every splitting rule and through NFC, against `tokenizers`
// (tests/oracle/make_rule_goldens.py).

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/text/code_point_sums.h"
#include "text/nfc.h"
#include "text/splitter.h"

namespace pagoda::text {
namespace {

class RuleOverCodePoints : public testing::TestWithParam<std::string> {};

TEST_P(RuleOverCodePoints, CutsAsTheOracleDoes) {
  const auto splitter = Splitter::Create(GetParam());
  ASSERT_TRUE(splitter.ok()) << splitter.status();
  std::vector<std::string_view> pieces;
  std::vector<unsigned char> lengths;  // 32-bit, lowest byte first
  CompareCodePointSums(
      "split_" + GetParam() + ".bin", "a@b1@2 !@! @\n'@s'@e'L@", [&](std::string_view text) {
        pieces.clear();
        lengths.clear();
        EXPECT_TRUE((*splitter)->Split(text, pieces).ok());
        for (const std::string_view piece : pieces) {
          for (int shift = 0; shift < 32; shift += 8) {
            lengths.push_back(static_cast<unsigned char>((piece.size() >> shift) & 0xFF));
          }
        }
        return Crc32(lengths);
      });
}

INSTANTIATE_TEST_SUITE_P(Published, RuleOverCodePoints,
                         testing::Values("gpt-2", "llama-bpe", "qwen2", "smollm"),
                         [](const auto& named) {
                           std::string name = named.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Nfc, EqualsTheOracleOnEveryCodePointAmongMarks) {
  CompareCodePointSums(
      "nfc.bin", "a@\u0301\u0323@\u0315e@\u0345@@\u1161@\u11a8 \u0300@\u093c@\u3099",
      [](std::string_view text) {
        const std::string form = NormalizeNfc(text);
        return Crc32({reinterpret_cast<const unsigned char*>(form.data()), form.size()});
      });
}

}  // namespace
}  // namespace pagoda::text
