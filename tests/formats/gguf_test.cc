#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fixtures/gguf_writer.h"

namespace pagoda::formats {
namespace {

using fixtures::ByteSink;
using fixtures::GgufWriter;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kU8 = 0;
constexpr std::uint32_t kI8 = 1;
constexpr std::uint32_t kU32 = 4;
constexpr std::uint32_t kBool = 7;
constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kArray = 9;

std::vector<std::byte> SoundFile() {
  GgufWriter writer;
  writer.String("general.architecture", "llama");
  writer.Unsigned("llama.block_count", 2);
  writer.Float("llama.rope.freq_base", 10000.0f);
  writer.Bool("tokenizer.ggml.add_bos_token", true);
  const std::vector<std::string> words = {"a", "", "ccc"};
  writer.Strings("tokenizer.ggml.tokens", words);
  const std::array<std::int32_t, 3> kinds = {1, 3, 6};
  writer.Integers("tokenizer.ggml.token_type", kinds);
  const std::array<float, 2> scores = {-1.5f, 2.0f};
  writer.Floats("tokenizer.ggml.scores", scores);
  const std::array<float, 6> values = {0, 1, 2, 3, 4, 5};
  const std::array<std::uint64_t, 2> shape = {3, 2};
  writer.Tensor("first", shape, GgufType::kF32, std::as_bytes(std::span(values)));
  const std::array<std::byte, 34> block = {};
  const std::array<std::uint64_t, 1> flat = {32};
  writer.Tensor("second", flat, GgufType::kQ8_0, block);
  return writer.Bytes();
}

TEST(GgufFile, ReturnsEveryValueAndTensorOfASoundFile) {
  const std::string path = fixtures::TemporaryPath("sound.gguf");
  ASSERT_TRUE(fixtures::WriteFile(path, SoundFile()).ok());
  const auto opened = GgufFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const GgufFile& file = **opened;
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.metadata().size(), 7u);
  EXPECT_EQ(file.metadata()[1].first, "llama.block_count");
  EXPECT_EQ(*file.String("general.architecture"), "llama");
  EXPECT_EQ(*file.Unsigned("llama.block_count"), 2u);
  EXPECT_EQ(*file.Float("llama.rope.freq_base"), 10000.0);
  EXPECT_TRUE(*file.Bool("tokenizer.ggml.add_bos_token"));
  EXPECT_THAT(*file.Strings("tokenizer.ggml.tokens"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*file.Unsigneds("tokenizer.ggml.token_type"), ElementsAre(1, 3, 6));
  EXPECT_THAT(*file.Floats("tokenizer.ggml.scores"), ElementsAre(-1.5, 2.0));
  const GgufTensor* const first = file.FindTensor("first");
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(first->shape, ElementsAre(3, 2));
  ASSERT_EQ(first->data.size(), 24u);
  float last = 0;
  std::memcpy(&last, first->data.data() + 20, sizeof last);
  EXPECT_EQ(last, 5.0f);
  EXPECT_EQ(file.FindTensor("second")->data.size(), 34u);
  EXPECT_EQ(file.FindTensor("third"), nullptr);
}

TEST(GgufFile, TypedAccessNamesTheKeyAndWhatWasFound) {
  const std::vector<std::byte> bytes = SoundFile();
  const auto file = GgufFile::Parse(bytes, "x.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Find("absent"), nullptr);
  EXPECT_THAT(std::string((*file)->Unsigned("absent").status().message()),
              HasSubstr("'absent': expected an integer of at least 0, found nothing"));
  EXPECT_THAT(std::string((*file)->String("llama.block_count").status().message()),
              HasSubstr("found unsigned integer"));
  EXPECT_THAT(std::string((*file)->Strings("tokenizer.ggml.scores").status().message()),
              HasSubstr("found array of floats"));
}

// A file of one metadata entry, written by `entry`, and no tensor.
std::vector<std::byte> OneEntry(const std::function<void(ByteSink&)>& entry,
                                std::uint64_t num_entries = 1) {
  ByteSink sink;
  sink.Text("GGUF").U32(3).U64(0).U64(num_entries);
  entry(sink);
  return {sink.bytes().begin(), sink.bytes().end()};
}

struct TensorClaim {
  std::string name = "weight";
  std::vector<std::uint64_t> shape = {8};
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

// A file that describes `claims` and then has `data_bytes` bytes of tensor data.
std::vector<std::byte> Tensors(const std::vector<TensorClaim>& claims, std::size_t data_bytes) {
  ByteSink sink;
  sink.Text("GGUF").U32(3).U64(claims.size()).U64(0);
  for (const TensorClaim& claim : claims) {
    sink.String(claim.name).U32(static_cast<std::uint32_t>(claim.shape.size()));
    for (const std::uint64_t size : claim.shape) sink.U64(size);
    sink.U32(claim.type).U64(claim.offset);
  }
  sink.PadTo(32).Append(std::vector<std::byte>(data_bytes));
  return {sink.bytes().begin(), sink.bytes().end()};
}

void ExpectRefused(const std::vector<std::byte>& bytes, const std::string& words) {
  const auto file = GgufFile::Parse(bytes, "crafted.gguf");
  ASSERT_FALSE(file.ok()) << words;
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("crafted.gguf: "));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(words));
}

TEST(GgufFileG4, RefusesWrongMagicVersionAndByteOrder) {
  ByteSink text;
  text.Text("<!DOCTYPE html>");
  ExpectRefused({text.bytes().begin(), text.bytes().end()}, "not a GGUF file");
  for (const std::uint32_t version : {0u, 1u, 4u}) {
    ByteSink sink;
    sink.Text("GGUF").U32(version).U64(0).U64(0);
    ExpectRefused({sink.bytes().begin(), sink.bytes().end()}, "supported are 2 and 3");
  }
  ByteSink big_endian;
  big_endian.Text("GGUF").U32(0x03000000u).U64(0).U64(0);
  ExpectRefused({big_endian.bytes().begin(), big_endian.bytes().end()}, "big-endian");
}

TEST(GgufFileG4, RefusesEveryCutOfASoundFile) {
  const std::vector<std::byte> whole = SoundFile();
  for (std::size_t size = 0; size + 32 <= whole.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees one byte too many.
    const std::vector<std::byte> cut(whole.begin(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(GgufFile::Parse(cut, "cut.gguf").ok()) << size;
  }
}

TEST(GgufFileG4, RefusesImpossibleCounts) {
  ExpectRefused(OneEntry([](ByteSink&) {}, 1ull << 60), "metadata entries; the limit is");
  ByteSink sink;
  sink.Text("GGUF").U32(3).U64(1ull << 60).U64(0);
  ExpectRefused({sink.bytes().begin(), sink.bytes().end()}, "tensors; the limit is");
}

TEST(GgufFileG4, RefusesBadStringsAndKeys) {
  ExpectRefused(OneEntry([](ByteSink& s) { s.U64(1ull << 63); }), "the limit is 256");
  ExpectRefused(OneEntry([](ByteSink& s) { s.U64(100).Text("short"); }), "ends inside");
  ExpectRefused(OneEntry([](ByteSink& s) { s.String("").U32(kU32).U32(1); }),
                "a metadata key is empty");
  ExpectRefused(OneEntry([](ByteSink& s) { s.String("key").U32(kString).U64(1ull << 63); }),
                "a string says it has 9223372036854775808 bytes; 0 are left");
}

TEST(GgufFileG4, RefusesBadValues) {
  ExpectRefused(OneEntry([](ByteSink& s) { s.String("key").U32(13).U32(1); }), "value type 13");
  ExpectRefused(OneEntry([](ByteSink& s) { s.String("key").U32(kBool).Number<char>(2); }),
                "a boolean is 2");
  ExpectRefused(
      OneEntry([](ByteSink& s) { s.String("key").U32(kArray).U32(kArray).U64(1).U32(kU8); }),
      "array of arrays");
  ExpectRefused(OneEntry([](ByteSink& s) { s.String("key").U32(kArray).U32(99).U64(0); }),
                "element type 99");
  ExpectRefused(
      OneEntry([](ByteSink& s) { s.String("key").U32(kArray).U32(kString).U64(1ull << 61); }),
      "says it has 2305843009213693952 elements; 0 bytes are left");
  ExpectRefused(
      OneEntry([](ByteSink& s) { s.String("key").U32(kU32).U32(1).String("key").U32(kU32).U32(2); },
               2),
      "'key' stands in the file twice");
}

TEST(GgufFileG4, ScoresStoredAsBytesAreNotReadAsFloats) {
  const auto bytes = OneEntry([](ByteSink& s) {
    s.String("tokenizer.ggml.scores").U32(kArray).U32(kI8).U64(2).Number<char>(-1).Number<char>(4);
  });
  const auto file = GgufFile::Parse(bytes, "crafted.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(std::string((*file)->Floats("tokenizer.ggml.scores").status().message()),
              HasSubstr("expected an array of floats, found array of signed integers"));
  EXPECT_FALSE((*file)->Unsigneds("tokenizer.ggml.scores").ok());
}

TEST(GgufFileG4, RefusesImpossibleShapes) {
  ExpectRefused(Tensors({{.shape = {1, 1, 1, 1, 1, 1, 1, 1, 1}}}, 32), "has 9 dimensions");
  ExpectRefused(Tensors({{.shape = {}}}, 32), "has 0 dimensions");
  ExpectRefused(Tensors({{.shape = {8, 0}}}, 32), "dimension 1 is 0");
  ExpectRefused(Tensors({{.shape = {1ull << 33, 1ull << 33}}}, 32), "number of values exceeds");
  ExpectRefused(Tensors({{.shape = {1ull << 31, 1ull << 31}}}, 32), "size exceeds 64 bits");
  ExpectRefused(Tensors({{.shape = {40}, .type = 2}}, 64), "do not fill blocks of 32 (Q4_0)");
}

TEST(GgufFileG4, RefusesQuantizedTensorsWhoseRowsOrSizesAreNotTheirTypes) {
  struct Case {
    std::uint32_t type;
    std::uint64_t block_values, block_bytes;
    const char* name;
  };
  for (const Case& c :
       {Case{6, 32, 22, "Q5_0"}, Case{7, 32, 24, "Q5_1"}, Case{12, 256, 144, "Q4_K"},
        Case{13, 256, 176, "Q5_K"}, Case{14, 256, 210, "Q6_K"}}) {
    SCOPED_TRACE(c.name);
    const std::uint64_t type_bytes = 2 * c.block_bytes;
    const auto padded = [](std::uint64_t bytes) { return (bytes + 31) / 32 * 32; };
    EXPECT_TRUE(GgufFile::Parse(
                    Tensors({{.shape = {c.block_values, 2}, .type = c.type}}, padded(type_bytes)),
                    "whole.gguf")
                    .ok());
    // SmolLM2's 576 columns fill blocks of 32 and not of 256; 48 fill neither.
    const std::uint64_t columns = c.block_values == 256 ? 576 : 48;
    ExpectRefused(
        Tensors({{.name = "blk.0.ffn_up.weight", .shape = {columns, 8}, .type = c.type}}, 4096),
        absl::StrCat("tensor 'blk.0.ffn_up.weight': rows of ", columns,
                     " values do not fill blocks of ", c.block_values, " (", c.name, ")"));
    ExpectRefused(Tensors({{.shape = {c.block_values, 3}, .type = c.type}}, padded(type_bytes)),
                  absl::StrCat("needs ", 3 * c.block_bytes, " bytes"));
    // 2^63 values: the product with the bytes of a block must not wrap on its way down.
    ExpectRefused(Tensors({{.shape = {1ull << 32, 1ull << 31}, .type = c.type}}, 32),
                  absl::StrCat("needs ", (1ull << 63) / c.block_values * c.block_bytes, " bytes"));
    ExpectRefused(Tensors({{.shape = {1ull << 32, 1ull << 32}, .type = c.type}}, 32),
                  "number of values exceeds");
  }
}

TEST(GgufFileG4, RefusesTensorsOutsideTheDataOrOnTopOfEachOther) {
  EXPECT_TRUE(GgufFile::Parse(Tensors({{}}, 32), "good.gguf").ok());
  ExpectRefused(Tensors({{.offset = 64}}, 32), "needs 32 bytes at offset 64");
  ExpectRefused(Tensors({{.offset = ~std::uint64_t{31}}}, 32), "of the tensor data, which has 32");
  ExpectRefused(Tensors({{.shape = {16}}}, 32), "needs 64 bytes at offset 0");
  ExpectRefused(Tensors({{.offset = 8}}, 64), "not a multiple of the alignment 32");
  ExpectRefused(Tensors({{.name = "a", .shape = {16}}, {.name = "b", .offset = 32}}, 64),
                "'b' at offset 32 overlaps");
  ExpectRefused(Tensors({{.name = "a"}, {.name = "a", .offset = 32}}, 64), "'a' stands in the");
  ExpectRefused(Tensors({{.name = "a"}, {.name = "b", .offset = 64}}, 96), "belong to no tensor");
  ExpectRefused(Tensors({{}}, 32 + 39), "39 bytes after the last tensor");
}

TEST(GgufFileG4, RefusesAlignmentsThatAreNoPowerOfTwo) {
  for (const std::uint32_t alignment : {0u, 4u, 24u, 1u << 31}) {
    ExpectRefused(
        OneEntry([&](ByteSink& s) { s.String("general.alignment").U32(kU32).U32(alignment); }),
        "general.alignment is");
  }
}

TEST(GgufFileG4, ATypeOfUnknownLayoutIsKeptForTheLoaderToRefuseByName) {
  const auto bytes = Tensors({{.type = 4242}}, 32);
  const auto file = GgufFile::Parse(bytes, "crafted.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->tensors()[0].type, 4242u);
  EXPECT_TRUE((*file)->tensors()[0].data.empty());
}

// Address space of this process, in bytes.
std::uint64_t AddressSpace() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t num_pages = 0;
  statm >> num_pages;
  return num_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(GgufFileG4, CountsThatLieDoNotMakeTheParserAllocate) {
  // Every count claims as much as its limit lets it while the bytes are not there: believed once,
  // it asks for 4 GiB or more and the process ends.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight{.rlim_cur = AddressSpace() + (256u << 20), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  for (const std::uint32_t type : {kU8, kI8, kU32, kBool, kString}) {
    ExpectRefused(
        OneEntry([&](ByteSink& s) { s.String("k").U32(kArray).U32(type).U64(1ull << 36); },
                 GgufFile::kMaxMetadataEntries),
        "elements; 0 bytes are left");
  }
  ByteSink sink;
  sink.Text("GGUF").U32(3).U64(GgufFile::kMaxTensors).U64(0);
  ExpectRefused({sink.bytes().begin(), sink.bytes().end()}, "ends inside a tensor name");
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

}  // namespace
}  // namespace pagoda::formats
