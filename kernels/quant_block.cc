#include "kernels/quant_block.h"

#include <cstring>

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::kernels {
namespace {

constexpr std::size_t kSize = kQuantBlock;
constexpr std::size_t kHalf = kSize / 2;

std::uint16_t LoadU16(const std::byte* from) {
  std::uint16_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

int ByteAt(const std::byte* bytes, std::size_t i) { return std::to_integer<int>(bytes[i]); }

void Put(QuantBlock& block, std::size_t i, int q) { block.q[i] = static_cast<std::int8_t>(q); }

// Elements i and i + 16 share byte i.
void ReadNibbles(const std::byte* bytes, QuantBlock& block) {
  for (std::size_t i = 0; i < kHalf; ++i) {
    Put(block, i, ByteAt(bytes, i) & 15);
    Put(block, i + kHalf, ByteAt(bytes, i) >> 4);
  }
}

// Bit i of four bytes is the fifth bit of element i.
void ReadFives(const std::byte* bits, QuantBlock& block) {
  ReadNibbles(bits + 4, block);
  for (std::size_t i = 0; i < kSize; ++i) {
    Put(block, i, block.q[i] | ((ByteAt(bits, i / 8) >> (i % 8) & 1) << 4));
  }
}

void ReadBytes(const std::byte* bytes, QuantBlock& block) {
  for (std::size_t i = 0; i < kSize; ++i) block.q[i] = static_cast<std::int8_t>(bytes[i]);
}

// The sub-scale and sub-minimum, six bits each, of 32 elements of Q4_K or Q5_K. The first four
// pairs lie plain in two times four bytes, whose upper two bits complete the other four.
void ReadSixBitScales(const std::byte* bytes, std::size_t sub, QuantBlock& block) {
  int scale = ByteAt(bytes, sub % 4);
  int minimum = ByteAt(bytes, 4 + sub % 4);
  if (sub < 4) {
    scale &= 63;
    minimum &= 63;
  } else {
    const int low = ByteAt(bytes, 4 + sub);
    scale = (low & 15) | (scale >> 2 & 48);
    minimum = low >> 4 | (minimum >> 2 & 48);
  }
  block.scales.fill(static_cast<std::int8_t>(scale));
  block.minimum_scale = static_cast<std::int8_t>(minimum);
}

// d, m, scales, [fifth bits: bit `sub` of byte i,] nibbles: 32 bytes hold the low ones of one group
// of 32 and the high ones of the next.
void ReadFourOrFiveK(const std::byte* from, std::size_t sub, bool has_fifth, QuantBlock& block) {
  block.d = LoadU16(from);
  block.m = LoadU16(from + 2);
  ReadSixBitScales(from + 4, sub, block);
  const std::byte* fifths = from + 16;
  const std::byte* nibbles = fifths + (has_fifth ? kSize : 0) + sub / 2 * kSize;
  for (std::size_t i = 0; i < kSize; ++i) {
    const int nibble = ByteAt(nibbles, i) >> (sub % 2 * 4) & 15;
    Put(block, i, has_fifth ? nibble | ((ByteAt(fifths, i) >> sub & 1) << 4) : nibble);
  }
}

// Nibbles, upper two bits, scales, d. Each 128 elements have 64 bytes of nibbles, whose low ones
// are the first 64, and 32 bytes of upper bits, two of every byte for each 32 elements.
void ReadSixK(const std::byte* from, std::size_t sub, QuantBlock& block) {
  const std::size_t part = sub / 4;
  const std::size_t quarter = sub % 4;
  const std::byte* nibbles = from + part * 64 + quarter % 2 * kSize;
  const std::byte* upper = from + 128 + part * kSize;
  const std::byte* scales = from + 192 + 2 * sub;
  for (std::size_t i = 0; i < kSize; ++i) {
    const int nibble = ByteAt(nibbles, i) >> (quarter / 2 * 4) & 15;
    Put(block, i, nibble | ((ByteAt(upper, i) >> (2 * quarter) & 3) << 4));
  }
  block.scales = {static_cast<std::int8_t>(scales[0]), static_cast<std::int8_t>(scales[1])};
  block.d = LoadU16(from + 208);
}

}  // namespace

float QuantBlock::Scale(std::size_t half) const {
  return base::FloatFromF16(d) * static_cast<float>(scales[half]);
}

float Minimum(ElementType type, const QuantBlock& block) {
  const float m = base::FloatFromF16(block.m);
  return BlockColumns(type) == kQuantBlock ? m : -(m * static_cast<float>(block.minimum_scale));
}

QuantBlock ReadQuantBlock(ElementType type, const std::byte* row, std::int64_t index) {
  PAGODA_CHECK_MSG(IsQuantized(type), Name(type));
  const std::int64_t per_block = BlockColumns(type) / kQuantBlock;
  const std::byte* from = row + index / per_block * BlockBytes(type);
  const auto sub = static_cast<std::size_t>(index % per_block);
  QuantBlock block;
  block.d = LoadU16(from);
  if (HasMinimum(type)) block.m = LoadU16(from + 2);
  const std::byte* payload = from + (HasMinimum(type) ? 4 : 2);
  switch (type) {
    case ElementType::kQ4_0:
    case ElementType::kQ4_1:
      ReadNibbles(payload, block);
      break;
    case ElementType::kQ5_0:
    case ElementType::kQ5_1:
      ReadFives(payload, block);
      break;
    case ElementType::kQ8_0:
      ReadBytes(payload, block);
      break;
    case ElementType::kQ4_K:
    case ElementType::kQ5_K:
      ReadFourOrFiveK(from, sub, type == ElementType::kQ5_K, block);
      break;
    case ElementType::kQ6_K:
      ReadSixK(from, sub, block);
      break;
    case ElementType::kF32:
    case ElementType::kF16:
    case ElementType::kBf16:
      break;
  }
  return block;
}

}  // namespace pagoda::kernels
