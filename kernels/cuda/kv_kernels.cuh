#pragma once

// Kernels that write the KV pool: turning by position, storing, scrubbing, copying.

#include "base/exact_math.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/mutation.cuh"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

// 16 bytes that move as one.
struct alignas(16) Bytes16 {
  std::uint32_t words[4];
};

PAGODA_DEVICE unsigned char* TokenOf(const KvPlaneArguments& plane, std::int64_t block,
                                     std::int64_t layer, std::int64_t head, std::int64_t token) {
  return plane.base + block * plane.block_stride + layer * plane.layer_stride +
         head * plane.head_stride + token * plane.token_stride;
}

PAGODA_DEVICE std::uint16_t* SlotOf(const RopeArguments& arguments, const KvPlaneArguments& plane,
                                    std::int64_t slot, int head) {
  const std::int64_t block = slot >> arguments.kv.block_shift;
  const std::int64_t next = Mutated(Mutation::kWriteKvToTheNextToken) ? 1 : 0;
  const std::int64_t token = (slot + next) & ((std::int64_t{1} << arguments.kv.block_shift) - 1);
  return reinterpret_cast<std::uint16_t*>(TokenOf(plane, block, arguments.layer, head, token));
}

// The two dims that make pair p: first the pairs that turn, then the rest as neighbours.
struct DimPair {
  int first, second;
  bool turns;
};
PAGODA_DEVICE DimPair PairOf(const RopeArguments& arguments, int p) {
  const int turning = arguments.rotary_size / 2;
  if (p >= turning) return {2 * p, 2 * p + 1, false};
  if (arguments.interleaved != Mutated(Mutation::kRopeTakesOtherPairs))
    return {2 * p, 2 * p + 1, true};
  return {p, p + turning, true};
}

// One head of one row: turned if kTurns and it is not V, then to `stored` or, without one, in
// place.
template <bool kTurns>
PAGODA_DEVICE void TurnHead(const RopeArguments& arguments, std::int64_t row, const float* head,
                            float* in_place, std::uint16_t* stored) {
  const float* cos = nullptr;
  const float* sin = nullptr;
  if (kTurns) {
    const std::int64_t position = arguments.positions[row];
    cos = arguments.cos.data + position * arguments.cos.stride;
    sin = arguments.sin.data + position * arguments.sin.stride;
  }
  for (int p = ThreadIndex(); p < arguments.head_size / 2; p += kElementThreads) {
    const DimPair pair = kTurns ? PairOf(arguments, p) : DimPair{2 * p, 2 * p + 1, false};
    float a = head[pair.first];
    float b = head[pair.second];
    if (kTurns && pair.turns) {
      const float sine = Mutated(Mutation::kRopeTurnsBackwards) ? -sin[p] : sin[p];
      const float turned = base::Fma(a, cos[p], -(b * sine));
      b = base::Fma(b, cos[p], a * sine);
      a = turned;
    }
    if (stored != nullptr) {
      stored[pair.first] = base::Bf16FromFloat(a);
      stored[pair.second] = base::Bf16FromFloat(b);
    } else if (in_place != nullptr) {
      in_place[pair.first] = a;
      in_place[pair.second] = b;
    }
  }
}

// CTA y is a head: H of the query, then G of the key, then G of the value.
template <bool kTurns, bool kStores>
PAGODA_KERNEL(kElementThreads, 4)
Rope(PAGODA_ARGUMENT RopeArguments arguments) {
  const std::int64_t row = CtaX();
  int head = CtaY();
  if (head < arguments.num_query_heads) {
    float* const query = arguments.query.data + row * arguments.query.stride +
                         std::int64_t{head} * arguments.head_size;
    TurnHead<kTurns>(arguments, row, query, query, nullptr);
    return;
  }
  head -= arguments.num_query_heads;
  const bool is_key = head < arguments.num_kv_heads;
  if (!is_key) head -= arguments.num_kv_heads;
  const std::int64_t column = std::int64_t{head} * arguments.head_size;
  const std::int64_t slot = kStores ? arguments.slots[row] : 0;
  if (slot < 0) return;
  if (is_key) {
    float* const key = arguments.key.data + row * arguments.key.stride + column;
    std::uint16_t* const stored =
        kStores ? SlotOf(arguments, arguments.kv.key, slot, head) : nullptr;
    TurnHead<kTurns>(arguments, row, key, key, stored);
  } else {
    const float* const value = arguments.value.data + row * arguments.value.stride + column;
    TurnHead<false>(arguments, row, value, nullptr,
                    SlotOf(arguments, arguments.kv.value, slot, head));
  }
}

// CTA (block, layer, K or V): every byte of every token of every head.
PAGODA_KERNEL(kElementThreads, 4) ZeroBlocks(PAGODA_ARGUMENT BlockArguments arguments) {
  const KvPlaneArguments& plane = CtaZ() == 0 ? arguments.kv.key : arguments.kv.value;
  const int pieces = arguments.head_bytes / 16;
  if (Mutated(Mutation::kZeroBlocksForgetsValues) && CtaZ() == 1) return;
  const int tokens = 1 << arguments.kv.block_shift;
  const std::int64_t block = arguments.blocks[CtaX()];
  for (int i = ThreadIndex(); i < arguments.num_kv_heads * tokens * pieces; i += kElementThreads) {
    const int token = i / pieces % tokens;
    const int head = i / pieces / tokens;
    unsigned char* const at = TokenOf(plane, block, CtaY(), head, token);
    *reinterpret_cast<Bytes16*>(at + i % pieces * 16) = Bytes16{{0, 0, 0, 0}};
  }
}

// CTA (copy, layer, K or V). The copies of one launch touch no block twice, unless as sources.
PAGODA_KERNEL(kElementThreads, 4) CopyBlocks(PAGODA_ARGUMENT BlockArguments arguments) {
  const KvPlaneArguments& plane = CtaZ() == 0 ? arguments.kv.key : arguments.kv.value;
  BlockCopyArguments copy = arguments.copies[CtaX()];
  if (Mutated(Mutation::kCopyBlocksTakesWholeBlocks))
    copy.num_slots = 1 << arguments.kv.block_shift;
  const int pieces = arguments.head_bytes / 16;
  const int count = arguments.num_kv_heads * copy.num_slots * pieces;
  for (int i = ThreadIndex(); i < count; i += kElementThreads) {
    const int token = i / pieces % copy.num_slots;
    const int head = i / pieces / copy.num_slots;
    const unsigned char* const from = TokenOf(plane, copy.source, CtaY(), head, token);
    unsigned char* const to = TokenOf(plane, copy.target, CtaY(), head, token);
    *reinterpret_cast<Bytes16*>(to + i % pieces * 16) =
        *reinterpret_cast<const Bytes16*>(from + i % pieces * 16);
  }
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
