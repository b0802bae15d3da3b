#include "tests/text/sentence_piece_golden.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "text/text_stream.h"

namespace pagoda::text {
namespace {

// A golden file, read front to back.
class Golden {
 public:
  explicit Golden(const std::string& form) {
    std::ifstream file(PAGODA_SOURCE_DIR "/tests/oracle/goldens/sentence_piece_" + form + ".bin",
                       std::ios::binary);
    data_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::uint32_t Number(std::size_t bytes) {
    std::uint32_t value = 0;
    EXPECT_LE(at_ + bytes, data_.size());
    std::memcpy(&value, data_.data() + at_, bytes);
    at_ += bytes;
    return value;
  }
  std::string Text(std::size_t length) {
    at_ += length;
    return data_.substr(at_ - length, length);
  }
  bool AtEnd() const { return at_ >= data_.size(); }

 private:
  std::string data_;
  std::size_t at_ = 0;
};

}  // namespace

std::string TextOf(const Tokenizer& tokenizer, std::span<const base::TokenId> ids) {
  TextStream stream(tokenizer.strips_first_space() ? TextStream::FirstSpace::kDropped
                                                   : TextStream::FirstSpace::kKept);
  for (const base::TokenId id : ids) stream.Append(TextBytes(tokenizer, id));
  return stream.Finish(std::numeric_limits<std::uint64_t>::max());
}

void CompareWithSentencePieceGolden(const Tokenizer& tokenizer, const std::string& form) {
  constexpr std::uint32_t kNoText = 0xFFFFFFFF;
  Golden golden(form);
  int count = 0;
  for (; !golden.AtEnd(); ++count) {
    const bool plain = golden.Number(1) == 0;
    const std::string input = golden.Text(golden.Number(4));
    std::vector<base::TokenId> wanted(golden.Number(4));
    for (base::TokenId& id : wanted) id = golden.Number(2);
    const auto ids = tokenizer.Encode(
        input, plain ? Tokenizer::Specials::kPlain : Tokenizer::Specials::kControl);
    ASSERT_TRUE(ids.ok()) << ids.status();
    ASSERT_EQ(*ids, wanted) << (plain ? "plain: " : "with control tokens: ") << input;
    const std::uint32_t length = golden.Number(4);
    if (length != kNoText) {
      ASSERT_EQ(TextOf(tokenizer, wanted), golden.Text(length));
    }
  }
  EXPECT_EQ(count, 120);
}

}  // namespace pagoda::text
