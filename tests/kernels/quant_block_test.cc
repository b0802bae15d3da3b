#include "kernels/quant_block.h"

#include <vector>

#include "gtest/gtest.h"

// Single bits of hand-made blocks; dequantize_test compares whole rows with the gguf package.
namespace pagoda::kernels {
namespace {

std::vector<std::byte> ZeroBlock(ElementType type) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(BlockBytes(type)));
  bytes[type == ElementType::kQ6_K ? 209 : 1] = std::byte{0x3c};  // d = 1
  if (HasMinimum(type)) bytes[3] = std::byte{0x40};               // m = 2
  return bytes;
}

TEST(QuantBlock, SixBitScalesOfTheUpperGroupsTakeTheirTopBitsFromTheLowerOnes) {
  for (const ElementType type : {ElementType::kQ4_K, ElementType::kQ5_K}) {
    std::vector<std::byte> bytes = ZeroBlock(type);
    bytes[4] = std::byte{0xc5};   // scale 5; 3 are the top bits of group 4's
    bytes[8] = std::byte{0xc7};   // minimum 7; 3
    bytes[12] = std::byte{0xa9};  // group 4: scale 9, minimum 10
    const QuantBlock first = ReadQuantBlock(type, bytes.data(), 0);
    EXPECT_EQ(first.Scale(0), 5.0f);
    EXPECT_EQ(Minimum(type, first), -14.0f);
    const QuantBlock fifth = ReadQuantBlock(type, bytes.data(), 4);
    EXPECT_EQ(fifth.Scale(1), 57.0f);
    EXPECT_EQ(Minimum(type, fifth), -116.0f);
  }
}

TEST(QuantBlock, NeighbouringGroupsShareNibblesAndEveryGroupHasItsFifthBit) {
  std::vector<std::byte> bytes = ZeroBlock(ElementType::kQ5_K);
  bytes[48] = std::byte{0x3c};
  bytes[16] = std::byte{0x02};
  EXPECT_EQ(ReadQuantBlock(ElementType::kQ5_K, bytes.data(), 0).q[0], 12);
  EXPECT_EQ(ReadQuantBlock(ElementType::kQ5_K, bytes.data(), 1).q[0], 3 + 16);
  EXPECT_EQ(ReadQuantBlock(ElementType::kQ5_K, bytes.data(), 2).q[0], 0);
}

TEST(QuantBlock, SixBitElementsStandTwoGroupsApartInAByteAndHaveSignedScales) {
  std::vector<std::byte> bytes = ZeroBlock(ElementType::kQ6_K);
  bytes[0] = std::byte{0x3c};
  bytes[128] = std::byte{0xe4};  // 0, 1, 2, 3
  bytes[196] = std::byte{0x80};
  EXPECT_EQ(ReadQuantBlock(ElementType::kQ6_K, bytes.data(), 0).q[0], 12);
  EXPECT_EQ(ReadQuantBlock(ElementType::kQ6_K, bytes.data(), 1).q[0], 16);
  const QuantBlock third = ReadQuantBlock(ElementType::kQ6_K, bytes.data(), 2);
  EXPECT_EQ(third.q[0], 3 + 32);
  EXPECT_EQ(third.Scale(0), -128.0f);
  EXPECT_EQ(third.Scale(1), 0.0f);
}

TEST(QuantBlock, ASecondBlockBeginsWhereTheFirstEnds) {
  for (const ElementType type : kAllElementTypes) {
    if (!IsQuantized(type)) continue;
    std::vector<std::byte> row = ZeroBlock(type);
    const std::vector<std::byte> second = ZeroBlock(type);
    row.insert(row.end(), second.begin(), second.end());
    row[row.size() - (type == ElementType::kQ6_K ? 2 : second.size())] = std::byte{0x01};
    const std::int64_t index = BlockColumns(type) / kQuantBlock;
    EXPECT_EQ(ReadQuantBlock(type, row.data(), index - 1).d, 0x3c00) << Name(type);
    EXPECT_EQ(ReadQuantBlock(type, row.data(), index).d, 0x3c01) << Name(type);
  }
}

TEST(QuantBlockDeathTest, FloatsHaveNoBlocks) {
  const std::vector<std::byte> row(128);
  EXPECT_DEATH(ReadQuantBlock(ElementType::kF16, row.data(), 0), "F16");
}

}  // namespace
}  // namespace pagoda::kernels
