#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/kv_geometry.h"

namespace pagoda::kernels {

// Order of K inside one block and head. The arithmetic does not depend on it, only the speed.
enum class KeyOrder : std::uint8_t {
  kTokenMajor,    // [token][D]
  kDimPairMajor,  // [D / 2][token][2]: neighbouring tokens lie side by side, so a lane can be a
                  // token
};

// Where the K, or the V, of one KV group lies. Element (block, layer, head, token, d) is at
//   base + block * block_stride + layer * layer_stride + head * head_stride + token * token_stride
//        + (d / 2) * pair_stride + (d % 2) * BytesPerElement(type).        All strides are bytes.
struct KvPlane {
  std::byte* base = nullptr;
  std::int64_t block_stride = 0;
  std::int64_t layer_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t token_stride = 0;
  std::int64_t pair_stride = 0;

  // The first byte of one block, layer and head.
  std::byte* Head(std::int64_t block, std::int64_t layer, std::int64_t head) const {
    return base + block * block_stride + layer * layer_stride + head * head_stride;
  }
};

// The whole KV pool of one group. A view: it owns nothing. V is token-major always (there a lane is
// a dim). Block 0 is the null block. Slot numbers in op parameters are block * block_size + token.
struct KvView {
  KvPlane key;
  KvPlane value;
  base::KvType type = base::KvType::kBf16;
  KeyOrder key_order = KeyOrder::kTokenMajor;  // what key.token_stride and key.pair_stride express
  std::int32_t num_blocks = 0;
  std::int32_t num_layers = 0;
  std::int32_t num_kv_heads = 0;  // G
  std::int32_t head_size = 0;     // D, even
  std::int32_t block_size = 0;    // tokens, a power of two
  // > 0: every byte of block b lies in [key.base + b * key.block_stride, + extent_bytes), and
  // nothing else does.
  std::int64_t extent_bytes = 0;
  // Scales of int8 and fp8 KV, per token and head. Reserved: no type has them yet.
  std::byte* scales = nullptr;
};

// The pool layout of the CPU: block-major, one block one extent; per layer K then V, each
// [head][token and dim]. Requires: `base` holds num_blocks * BytesPerBlock, aligned to 64.
inline KvView BlockMajorKvView(std::byte* base, const base::KvGroup& group, std::int32_t block_size,
                               std::int32_t num_blocks, KeyOrder key_order) {
  PAGODA_CHECK(group.head_size > 0 && group.head_size % 2 == 0);
  PAGODA_CHECK(block_size > 0 && (block_size & (block_size - 1)) == 0);
  const std::int64_t element = base::BytesPerElement(group.type);
  const std::int64_t head_bytes = element * group.head_size * block_size;
  const std::int64_t plane_bytes = head_bytes * group.num_kv_heads;
  const std::int64_t block_bytes = 2 * plane_bytes * group.num_layers;
  const KvPlane value = {.base = base + plane_bytes,
                         .block_stride = block_bytes,
                         .layer_stride = 2 * plane_bytes,
                         .head_stride = head_bytes,
                         .token_stride = element * group.head_size,
                         .pair_stride = 2 * element};
  KvPlane key = value;
  key.base = base;
  if (key_order == KeyOrder::kDimPairMajor) {
    key.token_stride = 2 * element;
    key.pair_stride = 2 * element * block_size;
  }
  return {.key = key,
          .value = value,
          .type = group.type,
          .key_order = key_order,
          .num_blocks = num_blocks,
          .num_layers = group.num_layers,
          .num_kv_heads = group.num_kv_heads,
          .head_size = group.head_size,
          .block_size = block_size,
          .extent_bytes = block_bytes,
          .scales = nullptr};
}

}  // namespace pagoda::kernels
