#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/kv_view.h"
#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {

struct PoolShape {
  base::KvType type = base::KvType::kBf16;
  KeyOrder order = KeyOrder::kTokenMajor;
  std::int32_t num_heads = 1;
  std::int32_t head_size = 32;
  std::int32_t block_size = 4;
  std::int32_t num_blocks = 8;
  std::int32_t num_layers = 2;
  bool gaps = false;  // bytes between blocks that belong to nobody
  std::int32_t gap_bytes = 52;
};

// A KV pool in which every byte is a NaN until something is written, in a buffer of the exact size.
class KvPool {
 public:
  explicit KvPool(const PoolShape& shape) : shape_(shape) {
    const base::KvGroup group = {.num_layers = shape.num_layers,
                                 .window_tokens = std::nullopt,
                                 .num_kv_heads = shape.num_heads,
                                 .head_size = shape.head_size,
                                 .type = shape.type};
    block_bytes_ = group.BytesPerToken() * shape.block_size;
    const std::int64_t gap = shape.gaps ? shape.gap_bytes : 0;
    bytes_.assign(
        static_cast<std::size_t>(shape.num_blocks * block_bytes_ + (shape.num_blocks - 1) * gap),
        std::byte{0xff});
    view_ = BlockMajorKvView(bytes_.data(), group, shape.block_size, shape.num_blocks, shape.order);
    view_.key.block_stride += gap;
    view_.value.block_stride += gap;
    if (shape.gaps) view_.extent_bytes = 0;
  }
  KvPool(const KvPool&) = delete;

  const KvView& view() const { return view_; }
  const PoolShape& shape() const { return shape_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  std::span<std::byte> Block(std::uint32_t block) {
    return std::span(bytes_).subspan(static_cast<std::size_t>(block * view_.key.block_stride),
                                     static_cast<std::size_t>(block_bytes_));
  }

 private:
  PoolShape shape_;
  std::vector<std::byte> bytes_;
  KvView view_;
  std::int64_t block_bytes_ = 0;
};

// All blocks but the null block, shuffled.
inline std::vector<std::uint32_t> ScrambledBlocks(std::int32_t num_blocks, std::mt19937& random) {
  std::vector<std::uint32_t> blocks(static_cast<std::size_t>(num_blocks - 1));
  std::iota(blocks.begin(), blocks.end(), 1u);
  std::shuffle(blocks.begin(), blocks.end(), random);
  return blocks;
}

inline std::vector<std::int64_t> SlotsOf(std::span<const std::uint32_t> table,
                                         std::int32_t block_size, std::int64_t first,
                                         std::int64_t count) {
  std::vector<std::int64_t> slots;
  for (std::int64_t at = first; at < first + count; ++at) {
    slots.push_back(std::int64_t{table[static_cast<std::size_t>(at / block_size)]} * block_size +
                    at % block_size);
  }
  return slots;
}

}  // namespace pagoda::kernels
