#include "kernels/dequantize.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::kernels {
namespace {

std::vector<std::byte> FromHex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

ElementType TypeNamed(const std::string& name) {
  for (const ElementType type : kAllElementTypes) {
    if (name == Name(type)) return type;
  }
  ADD_FAILURE() << "unknown type " << name;
  return ElementType::kF32;
}

// The golden file is made by tests/oracle/dequantize.py with the gguf package.
TEST(Dequantize, EveryTypeGivesTheBitsOfTheGgufPackage) {
  std::ifstream file(PAGODA_SOURCE_DIR "/tests/kernels/golden/dequantize.txt");
  ASSERT_TRUE(file.is_open());
  std::string name, source, wanted;
  int num_types = 0;
  while (file >> name >> source >> wanted) {
    const std::vector<std::byte> row = FromHex(source);
    const std::vector<std::byte> bits = FromHex(wanted);
    std::vector<float> out(bits.size() / sizeof(float));
    DequantizeRow(TypeNamed(name), row.data(), out);
    for (std::size_t k = 0; k < out.size(); ++k) {
      std::uint32_t expected;
      std::memcpy(&expected, bits.data() + k * sizeof(float), sizeof(float));
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[k]), expected) << name << " element " << k;
    }
    ++num_types;
  }
  EXPECT_EQ(num_types, std::ssize(kAllElementTypes));
}

TEST(Dequantize, RowBytesAreThoseOfTheFile) {
  EXPECT_EQ(RowBytes(ElementType::kF32, 64), 256);
  EXPECT_EQ(RowBytes(ElementType::kBf16, 64), 128);
  EXPECT_EQ(RowBytes(ElementType::kQ4_0, 64), 36);
  EXPECT_EQ(RowBytes(ElementType::kQ4_1, 64), 40);
  EXPECT_EQ(RowBytes(ElementType::kQ8_0, 64), 68);
  EXPECT_EQ(RowBytes(ElementType::kQ5_0, 64), 44);
  EXPECT_EQ(RowBytes(ElementType::kQ5_1, 64), 48);
  EXPECT_EQ(RowBytes(ElementType::kQ4_K, 512), 288);
  EXPECT_EQ(RowBytes(ElementType::kQ5_K, 512), 352);
  EXPECT_EQ(RowBytes(ElementType::kQ6_K, 512), 420);
}

TEST(DequantizeDeathTest, ARowThatEndsInsideABlockAborts) {
  std::vector<float> out(33);
  const std::vector<std::byte> row(68);
  EXPECT_DEATH(DequantizeRow(ElementType::kQ8_0, row.data(), out), "BlockColumns");
  out.resize(128);
  EXPECT_DEATH(DequantizeRow(ElementType::kQ6_K, row.data(), out), "BlockColumns");
}

}  // namespace
}  // namespace pagoda::kernels
