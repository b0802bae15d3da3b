#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lanes.h"

// Rotation of one row's heads, and rounding of one token's K or V into the pool. Plain loops: the
// compiler turns them into lanes, and no sum is in them that an order could change.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {
namespace {

std::uint16_t RoundedBf16(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : rounded);
}

void RotateInterleaved(float* __restrict head, const RopeJob& job) {
  for (std::int64_t i = 0; i < job.rotary_size / 2; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    const float c = job.cos[i];
    const float s = job.sin[i];
    head[2 * i] = __builtin_fmaf(a, c, -(b * s));
    head[2 * i + 1] = __builtin_fmaf(b, c, a * s);
  }
}

void RotateHalves(float* __restrict head, const RopeJob& job) {
  const std::int64_t half = job.rotary_size / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[half + i];
    const float c = job.cos[i];
    const float s = job.sin[i];
    head[i] = __builtin_fmaf(a, c, -(b * s));
    head[half + i] = __builtin_fmaf(b, c, a * s);
  }
}

}  // namespace

void Rotate(const RopeJob& job) {
  for (std::int64_t h = 0; h < job.num_heads; ++h) {
    float* head = job.heads + h * job.head_size;
    if (job.interleaved) {
      RotateInterleaved(head, job);
    } else {
      RotateHalves(head, job);
    }
  }
}

void StoreKv(const StoreKvJob& job) {
  for (std::int64_t pair = 0; pair < job.head_size / 2; ++pair) {
    std::byte* target = job.target + pair * job.pair_stride;
    const float* source = job.source + 2 * pair;
    if (job.type == base::KvType::kBf16) {
      const std::uint16_t rounded[2] = {RoundedBf16(source[0]), RoundedBf16(source[1])};
      __builtin_memcpy(target, rounded, sizeof(rounded));
    } else {
      __builtin_memcpy(target, source, 2 * sizeof(float));
    }
  }
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
