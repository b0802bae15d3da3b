#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "tests/fixtures/gguf_writer.h"
#include "tests/fixtures/safetensors_writer.h"

namespace pagoda::formats {
namespace {

using fixtures::SafetensorsBytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::array<std::byte, 64> kData{};

std::string Refusal(std::span<const std::byte> bytes) {
  const auto file = SafetensorsFile::Parse(bytes, "bad.safetensors");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("bad.safetensors: "));
  return std::string(file.status().message());
}

// The refusal of this header before `num_bytes` of data.
std::string Refusal(std::string_view header, std::size_t num_bytes) {
  return Refusal(SafetensorsBytes(header, std::span(kData).first(num_bytes)));
}

TEST(Safetensors, GivesEveryTensorInTheOrderOfItsBytes) {
  std::array<std::byte, 12> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i);
  const auto bytes = SafetensorsBytes(
      R"({"__metadata__": {"format": "pt"},
          "b": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [8, 12]},
          "a": {"shape": [2], "data_offsets": [0, 8], "dtype": "F32"}})",
      data);
  const auto file = SafetensorsFile::Parse(bytes, "two.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->tensors().size(), 2u);
  EXPECT_EQ((*file)->tensors()[0].name, "a");
  const SafetensorsTensor* const b = (*file)->FindTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, "BF16");
  EXPECT_THAT(b->shape, ElementsAre(1, 2));
  EXPECT_EQ(b->data.size(), 4u);
  EXPECT_EQ(b->data[0], std::byte{8});
  EXPECT_EQ((*file)->FindTensor("c"), nullptr);
  EXPECT_EQ((*file)->FindTensor("__metadata__"), nullptr);
}

TEST(SafetensorsG3, LegalButOddHeadersLoad) {
  const std::string_view headers[] = {
      "{}",                                                                   // no tensor
      R"({"__metadata__": {}})",                                              // nothing said
      "{}                       ",                                            // padded
      R"({"z": {"dtype": "F32", "shape": [0, 7], "data_offsets": [0, 0]}})",  // no element
      R"({"x": {"dtype": "I64", "shape": [0], "data_offsets": [0, 0]},
          "y": {"dtype": "I64", "shape": [0], "data_offsets": [0, 0]}})"};
  for (const std::string_view header : headers) {
    const auto bytes = SafetensorsBytes(header, {});
    const auto file = SafetensorsFile::Parse(bytes, "odd.safetensors");
    EXPECT_TRUE(file.ok()) << header << ": " << file.status();
  }
  const auto scalar = SafetensorsBytes(
      R"({"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}})", std::span(kData).first(4));
  const auto file = SafetensorsFile::Parse(scalar, "scalar.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)->tensors()[0].shape, IsEmpty());
}

TEST(SafetensorsG3, AHeaderOfAnyLengthEndsWhereItSays) {
  for (const std::size_t length : {4096u, 8192u, 65536u, 1000003u}) {
    std::string header = R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})";
    header.resize(length, ' ');
    const auto bytes = SafetensorsBytes(header, std::span(kData).first(1));
    const auto file = SafetensorsFile::Parse(bytes, "long.safetensors");
    EXPECT_TRUE(file.ok()) << file.status();
  }
}

TEST(SafetensorsG3, ALengthThatLiesIsRefusedBeforeAnythingIsTaken) {
  fixtures::ByteSink huge;
  huge.U64(std::uint64_t{1} << 63).Text("{}");
  EXPECT_THAT(Refusal(huge.bytes()),
              HasSubstr("header has 9223372036854775808 bytes; the limit is 100000000"));
  fixtures::ByteSink past;
  past.U64(3).Text("{}");
  EXPECT_THAT(Refusal(past.bytes()), HasSubstr("header has 3 bytes, but only 2 follow"));
  fixtures::ByteSink cut;
  cut.U32(2);
  EXPECT_THAT(Refusal(cut.bytes()), HasSubstr("is 4 bytes long, too short for a header"));
}

TEST(SafetensorsG3, TheSameNameTwiceIsRefusedAsThat) {
  EXPECT_THAT(Refusal(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                          "a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})",
                      2),
              HasSubstr("the key 'a' stands twice"));
}

TEST(SafetensorsG3, RangesMustCoverTheDataEachByteOnce) {
  EXPECT_THAT(Refusal(R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                          "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}})",
                      6),
              HasSubstr("tensor 'b' begins at byte 2 of the data; expected 4: it overlaps"));
  EXPECT_THAT(Refusal(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                          "b": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]}})",
                      6),
              HasSubstr("tensor 'b' begins at byte 4 of the data; expected 2: a gap"));
  EXPECT_THAT(Refusal(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})", 3),
              HasSubstr("has 3 bytes of data, but its tensors take 2"));
}

TEST(SafetensorsG1, AFileShorterThanItsHeaderSaysIsRefusedWithTensorAndSizes) {
  EXPECT_THAT(Refusal(R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})", 15),
              HasSubstr("tensor 'a' lies at bytes 0 to 16, but the file has 15 bytes of data"));
  EXPECT_THAT(Refusal(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [9, 8]}})", 16),
              HasSubstr("lies at bytes 9 to 8"));
}

TEST(Safetensors, ASizeThatDoesNotFitTypeAndShapeIsRefusedWithBoth) {
  EXPECT_THAT(
      Refusal(R"({"a": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 8]}})", 8),
      HasSubstr("of type F16 and shape [2, 3] takes 12 bytes, but its data_offsets give it 8"));
  // 2^33 * 2^33 * 4 wraps to 0.
  EXPECT_THAT(Refusal(R"({"a": {"dtype": "F32", "shape": [8589934592, 8589934592],
                          "data_offsets": [0, 0]}})",
                      0),
              HasSubstr("takes more than 2^64 bytes, but its data_offsets give it 0"));
}

TEST(Safetensors, EntriesOfTheWrongKindAreRefusedByTensor) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"a": 1})", "lacks one of dtype, shape, data_offsets"},
      {R"({"a": {"dtype": "U8", "shape": [1]}})", "lacks one of"},
      {R"({"a": {"dtype": 8, "shape": [1], "data_offsets": [0, 1]}})",
       "the entry 'dtype' as a num"},
      {R"({"a": {"dtype": "Q9", "shape": [1], "data_offsets": [0, 1]}})", "unknown type 'Q9'"},
      {R"({"a": {"dtype": "U8", "shape": 1, "data_offsets": [0, 1]}})", "a shape that is no array"},
      {R"({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}})",
       "has a size that is not"},
      {R"({"a": {"dtype": "U8", "shape": [1.0], "data_offsets": [0, 1]}})", "has a size that is"},
      {R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0]}})", "are not two whole numbers"},
      {R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1], "x": 1}})", "the entry 'x'"},
      {R"({"": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})",
       "a tensor name of 0 bytes"},
      {R"({"__metadata__": [1]})", "__metadata__ is an array, not an object"},
      {R"({"__metadata__": {"a": 1}})", "__metadata__ entry 'a' is a number, not a string"},
      {R"([])", "its header is an array, not an object"},
      {R"({"a": )", "header: is not JSON"},
  };
  for (const auto& [header, words] : cases) {
    EXPECT_THAT(Refusal(header, 1), HasSubstr(std::string(words))) << header;
  }
}

TEST(Safetensors, OpensAFileWhereverItsDataBegins) {
  const std::string path = fixtures::TemporaryPath("opened.safetensors");
  const auto bytes =
      SafetensorsBytes(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}} )",
                       std::span(kData).first(1));
  ASSERT_TRUE(fixtures::WriteFile(path, bytes).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ((*file)->tensors()[0].data.size(), 1u);
  EXPECT_EQ(SafetensorsFile::Open("/nowhere/x.safetensors").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace pagoda::formats
