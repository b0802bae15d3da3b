#include "kernels/reference/kv_store.h"

#include <cstring>

#include "base/bits.h"

namespace pagoda::kernels::reference {
namespace {

std::byte* AddressOf(const KvView& kv, const KvPlane& plane, const KvPlace& place) {
  return plane.Head(place.slot / kv.block_size, place.layer, place.head) +
         place.slot % kv.block_size * plane.token_stride + place.d / 2 * plane.pair_stride +
         place.d % 2 * base::BytesPerElement(kv.type);
}

void Store(const KvView& kv, std::byte* target, float value) {
  if (kv.type == base::KvType::kF32) {
    std::memcpy(target, &value, sizeof(value));
  } else {
    const std::uint16_t bits = base::Bf16FromFloat(value);
    std::memcpy(target, &bits, sizeof(bits));
  }
}

// Calls visit(place) for each element of the first num_slots tokens of a block.
template <typename Visit>
void ForEachElement(const KvView& kv, std::uint32_t block, std::int32_t num_slots, Visit visit) {
  const std::int64_t first = std::int64_t{block} * kv.block_size;
  for (std::int32_t layer = 0; layer < kv.num_layers; ++layer) {
    for (std::int32_t head = 0; head < kv.num_kv_heads; ++head) {
      for (std::int64_t slot = first; slot < first + num_slots; ++slot) {
        for (std::int32_t d = 0; d < kv.head_size; ++d) visit(KvPlace{layer, head, slot, d});
      }
    }
  }
}

}  // namespace

float ReadKv(const KvView& kv, const KvPlane& plane, const KvPlace& place) {
  const std::byte* from = AddressOf(kv, plane, place);
  if (kv.type == base::KvType::kF32) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return base::FloatFromBf16(bits);
}

float RoundToKv(base::KvType type, float value) {
  return type == base::KvType::kF32 ? value : base::FloatFromBf16(base::Bf16FromFloat(value));
}

void WriteKv(const WriteKvParams& params) {
  const KvView& kv = *params.kv;
  for (std::int64_t t = 0; t < params.key.rows; ++t) {
    const std::int64_t slot = params.slots[static_cast<std::size_t>(t)];
    if (slot < 0) continue;
    for (std::int32_t head = 0; head < kv.num_kv_heads; ++head) {
      for (std::int32_t d = 0; d < kv.head_size; ++d) {
        const KvPlace place = {params.layer, head, slot, d};
        const std::int64_t column = std::int64_t{head} * kv.head_size + d;
        Store(kv, AddressOf(kv, kv.key, place), params.key.Row(t)[column]);
        Store(kv, AddressOf(kv, kv.value, place), params.value.Row(t)[column]);
      }
    }
  }
}

void ZeroBlocks(const KvView& kv, std::span<const std::uint32_t> blocks) {
  for (const std::uint32_t block : blocks) {
    ForEachElement(kv, block, kv.block_size, [&](const KvPlace& place) {
      Store(kv, AddressOf(kv, kv.key, place), 0.0f);
      Store(kv, AddressOf(kv, kv.value, place), 0.0f);
    });
  }
}

void CopyBlocks(const KvView& kv, std::span<const BlockCopy> copies) {
  const auto bytes = static_cast<std::size_t>(base::BytesPerElement(kv.type));
  for (const BlockCopy& copy : copies) {
    const std::int64_t shift =
        (std::int64_t{copy.target} - std::int64_t{copy.source}) * kv.block_size;
    ForEachElement(kv, copy.source, copy.num_slots, [&](const KvPlace& from) {
      KvPlace to = from;
      to.slot += shift;
      std::memcpy(AddressOf(kv, kv.key, to), AddressOf(kv, kv.key, from), bytes);
      std::memcpy(AddressOf(kv, kv.value, to), AddressOf(kv, kv.value, from), bytes);
    });
  }
}

}  // namespace pagoda::kernels::reference
