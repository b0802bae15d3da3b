#include "kernels/cpu/block_moves.h"

#include <cstring>

#include "base/check.h"

namespace pagoda::kernels::cpu {
namespace {

// Calls use(offset, bytes) for pieces of one block that together hold the first num_slots tokens of
// a plane, `offset` from plane.base + block * block_stride.
template <typename Use>
void ForPieces(const KvView& kv, const KvPlane& plane, std::int64_t num_slots, Use use) {
  const std::int64_t pair_bytes = 2 * base::BytesPerElement(kv.type);
  const std::int64_t num_pairs = kv.head_size / 2;
  for (std::int64_t i = 0; i < std::int64_t{kv.num_layers} * kv.num_kv_heads; ++i) {
    const std::int64_t head =
        i / kv.num_kv_heads * plane.layer_stride + i % kv.num_kv_heads * plane.head_stride;
    if (plane.token_stride == pair_bytes) {  // the tokens of a pair lie side by side
      for (std::int64_t pair = 0; pair < num_pairs; ++pair) {
        use(head + pair * plane.pair_stride, num_slots * pair_bytes);
      }
      continue;
    }
    PAGODA_CHECK(plane.pair_stride == pair_bytes);  // the pairs of a token do
    for (std::int64_t token = 0; token < num_slots; ++token) {
      use(head + token * plane.token_stride, num_pairs * pair_bytes);
    }
  }
}

}  // namespace

void ZeroBlock(const KvView& kv, std::uint32_t block) {
  if (kv.extent_bytes > 0) {
    std::memset(kv.key.base + block * kv.key.block_stride, 0,
                static_cast<std::size_t>(kv.extent_bytes));
    return;
  }
  for (const KvPlane* plane : {&kv.key, &kv.value}) {
    std::byte* base = plane->base + block * plane->block_stride;
    ForPieces(kv, *plane, kv.block_size, [&](std::int64_t offset, std::int64_t bytes) {
      std::memset(base + offset, 0, static_cast<std::size_t>(bytes));
    });
  }
}

void CopySlots(const KvView& kv, const BlockCopy& copy) {
  for (const KvPlane* plane : {&kv.key, &kv.value}) {
    const std::byte* source = plane->base + copy.source * plane->block_stride;
    std::byte* target = plane->base + copy.target * plane->block_stride;
    ForPieces(kv, *plane, copy.num_slots, [&](std::int64_t offset, std::int64_t bytes) {
      std::memcpy(target + offset, source + offset, static_cast<std::size_t>(bytes));
    });
  }
}

}  // namespace pagoda::kernels::cpu
