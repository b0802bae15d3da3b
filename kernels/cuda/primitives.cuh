#pragma once

// What kernels may ask of the machine: each primitive once as the GPU has it and once as the
// emulator means it, side by side. The only assembly of kernels/; a wrapper is one instruction.
// Kernels are written against these names, use dynamic shared memory alone, and compile unchanged
// with nvcc and, into an inline namespace of their own, with the host's compiler.

#include <cstdint>

#include "base/bits.h"

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#define PAGODA_CUDA_NAMESPACE device
#define PAGODA_DEVICE __device__ __forceinline__
#define PAGODA_KERNEL(threads, ctas_per_sm) __global__ void __launch_bounds__(threads, ctas_per_sm)
#define PAGODA_ARGUMENT const __grid_constant__
#define PAGODA_UNROLL _Pragma("unroll")
#define PAGODA_NO_UNROLL _Pragma("unroll 1")
#define PAGODA_UNROLL_BY_8 _Pragma("unroll 8")
#define PAGODA_SITE
#define PAGODA_ONLY_SITE

#else

#include <cmath>
#include <cstring>

#include "kernels/emulation/shared_access.h"
#include "kernels/emulation/thread.h"

#define PAGODA_CUDA_NAMESPACE emulated
#define PAGODA_DEVICE inline
#define PAGODA_KERNEL(threads, ctas_per_sm) inline void
#define PAGODA_ARGUMENT const
#define PAGODA_UNROLL
#define PAGODA_NO_UNROLL
#define PAGODA_UNROLL_BY_8
// Where a primitive was called; threads that meet must come from one place.
#define PAGODA_SITE , emulation::CallSite site = emulation::CallSite::Here()
#define PAGODA_ONLY_SITE emulation::CallSite site = emulation::CallSite::Here()

#endif

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

using Bf16 = std::uint16_t;  // its bits

// The A operand (16 x 16) of a matrix product, or four 8 x 8 matrices; what one lane holds.
struct Fragment4 {
  std::uint32_t words[4];
};
// The sums of a 16 x 8 product: of lane l, with g = l / 4 and t = l % 4, the elements (g, 2t),
// (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
struct Sums4 {
  float values[4];
};

inline constexpr std::uint32_t kWarp = 0xffffffffu;
inline constexpr int kWarpLanes = 32;

// --- place -----------------------------------------------------------------------------------

PAGODA_DEVICE int ThreadIndex() {
#if defined(__CUDACC__)
  return static_cast<int>(threadIdx.x);
#else
  return static_cast<int>(emulation::Self().thread);
#endif
}

PAGODA_DEVICE int CtaX() {
#if defined(__CUDACC__)
  return static_cast<int>(blockIdx.x);
#else
  return static_cast<int>(emulation::Self().cta.x);
#endif
}

PAGODA_DEVICE int CtaY() {
#if defined(__CUDACC__)
  return static_cast<int>(blockIdx.y);
#else
  return static_cast<int>(emulation::Self().cta.y);
#endif
}

PAGODA_DEVICE int CtaZ() {
#if defined(__CUDACC__)
  return static_cast<int>(blockIdx.z);
#else
  return static_cast<int>(emulation::Self().cta.z);
#endif
}

// The CTA's dynamic shared memory, aligned to 16.
PAGODA_DEVICE unsigned char* SharedMemory() {
#if defined(__CUDACC__)
  extern __shared__ __align__(128) unsigned char memory[];
  return memory;
#else
  return reinterpret_cast<unsigned char*>(emulation::Self().shared);
#endif
}

#if defined(__CUDACC__)
PAGODA_DEVICE std::uint32_t SharedAddress(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
#endif

// --- meeting ---------------------------------------------------------------------------------

// Every thread of the CTA waits for every other; writes before it are seen after it.
PAGODA_DEVICE void SyncCta(PAGODA_ONLY_SITE) {
#if defined(__CUDACC__)
  __syncthreads();
#else
  emulation::MeetCta(site);
#endif
}

// The value of lane (own ^ distance). All 32 lanes call it.
PAGODA_DEVICE float ShuffleXor(float value, int distance PAGODA_SITE) {
#if defined(__CUDACC__)
  return __shfl_xor_sync(kWarp, value, distance);
#else
  emulation::LaneData brought;
  std::memcpy(&brought.words[0], &value, sizeof(value));
  brought.words[1] = static_cast<std::uint32_t>(distance);
  const emulation::LaneData& taken = emulation::MeetWarp(
      emulation::WarpOperation::kShuffle, kWarp, site, brought,
      [](const emulation::WarpData& in, emulation::WarpData& out) {
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
          out.lanes[lane].words[0] = in.lanes[(lane ^ in.lanes[lane].words[1]) % 32].words[0];
        }
      });
  float result;
  std::memcpy(&result, &taken.words[0], sizeof(result));
  return result;
#endif
}

// --- shared memory -----------------------------------------------------------------------------

// A plain read or write of shared memory, noted by the emulator: which banks a warp's lanes meet
// is counted, and a step outside is a fault.
template <typename T>
PAGODA_DEVICE T LoadShared(const T* shared PAGODA_SITE) {
#if !defined(__CUDACC__)
  emulation::NoteShared(shared, sizeof(T), site);
#endif
  return *shared;
}

template <typename T>
PAGODA_DEVICE void StoreShared(T* shared, T value PAGODA_SITE) {
#if !defined(__CUDACC__)
  emulation::NoteShared(shared, sizeof(T), site);
#endif
  *shared = value;
}

// --- asynchronous copies -----------------------------------------------------------------------

// 16 bytes from global to shared memory, both aligned to 16; zeros, and nothing read, unless
// `valid`. There once WaitAsync has let it through, for this thread; for others after a SyncCta.
PAGODA_DEVICE void CopyAsync16(void* shared, const void* global, bool valid PAGODA_SITE) {
#if defined(__CUDACC__)
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(SharedAddress(shared)),
               "l"(global), "r"(bytes)
               : "memory");
#else
  emulation::NoteShared(shared, 16, site);
  emulation::CopyLater(static_cast<std::byte*>(shared),
                       valid ? static_cast<const std::byte*>(global) : nullptr, site);
#endif
}

PAGODA_DEVICE void CommitAsync() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#else
  emulation::CommitCopies();
#endif
}

// Until at most kGroups of the committed groups are under way.
template <int kGroups>
PAGODA_DEVICE void WaitAsync() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kGroups) : "memory");
#else
  emulation::WaitForCopies(static_cast<std::uint32_t>(kGroups));
#endif
}

// --- matrices ----------------------------------------------------------------------------------

#if !defined(__CUDACC__)
// Row r of matrix m, eight bf16, lies where lane 8 m + r points. kTransposed: lane (g, t) gets the
// elements (2t, g) and (2t + 1, g); else (g, 2t) and (g, 2t + 1).
template <bool kTransposed>
inline void CombineMatrixLoad(const emulation::WarpData& in, emulation::WarpData& out) {
  std::uint32_t conflicts = 0;
  for (std::uint32_t m = 0; m < 4; ++m) {
    Bf16 rows[8][8];
    std::uint32_t uses[8] = {};
    for (std::uint32_t r = 0; r < 8; ++r) {
      const std::byte* const address = in.lanes[m * 8 + r].address;
      std::memcpy(rows[r], address, sizeof(rows[r]));
      // 16 bytes are four of the 32 banks.
      conflicts += uses[reinterpret_cast<std::uintptr_t>(address) / 16 % 8]++ > 0 ? 1 : 0;
    }
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t g = lane / 4;
      const std::uint32_t t = lane % 4;
      const std::uint32_t low = kTransposed ? rows[2 * t][g] : rows[g][2 * t];
      const std::uint32_t high = kTransposed ? rows[2 * t + 1][g] : rows[g][2 * t + 1];
      out.lanes[lane].words[m] = low | high << 16;
    }
  }
  emulation::CountMatrixLoad(conflicts);
}

template <bool kTransposed>
inline Fragment4 EmulatedMatrixLoad(const void* row, emulation::CallSite site) {
  emulation::CheckSharedRead16(row, site);
  emulation::LaneData brought;
  brought.address = static_cast<const std::byte*>(row);
  brought.words[0] = kTransposed ? 1 : 0;
  const emulation::LaneData& taken = emulation::MeetWarp(
      emulation::WarpOperation::kMatrixLoad, kWarp, site, brought, CombineMatrixLoad<kTransposed>);
  Fragment4 result;
  std::memcpy(result.words, taken.words.data(), sizeof(result.words));
  return result;
}
#endif

// Four 8 x 8 matrices of bf16 from shared memory; lane l gives the address of row l % 8 of matrix
// l / 8, aligned to 16. All 32 lanes call it.
PAGODA_DEVICE Fragment4 LoadMatrix4(const void* row PAGODA_SITE) {
#if defined(__CUDACC__)
  Fragment4 r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r.words[0]), "=r"(r.words[1]), "=r"(r.words[2]), "=r"(r.words[3])
               : "r"(SharedAddress(row))
               : "memory");
  return r;
#else
  return EmulatedMatrixLoad<false>(row, site);
#endif
}

// The same, each matrix transposed.
PAGODA_DEVICE Fragment4 LoadMatrix4Transposed(const void* row PAGODA_SITE) {
#if defined(__CUDACC__)
  Fragment4 r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r.words[0]), "=r"(r.words[1]), "=r"(r.words[2]), "=r"(r.words[3])
               : "r"(SharedAddress(row))
               : "memory");
  return r;
#else
  return EmulatedMatrixLoad<true>(row, site);
#endif
}

#if !defined(__CUDACC__)
// Eight sums of a row side by side, for the host's vector unit.
using Row8 = float __attribute__((vector_size(32)));

inline float LowBf16(std::uint32_t word) { return base::FloatFromBf16(static_cast<Bf16>(word)); }
inline float HighBf16(std::uint32_t word) {
  return base::FloatFromBf16(static_cast<Bf16>(word >> 16));
}

// sum = sum + a_k * b_k in fp32, k ascending. Each product is exact; hardware rounds the sum of
// several at once, in ways of its own, so this is one of the orders that a GPU may have, not its
// bits.
inline void CombineMultiply(const emulation::WarpData& in, emulation::WarpData& out) {
  float a[16][16];
  Row8 b[16];
  Row8 sums[16];
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const auto& words = in.lanes[lane].words;
    const std::uint32_t g = lane / 4;
    const std::uint32_t t = lane % 4;
    for (std::uint32_t part = 0; part < 4; ++part) {
      float* const at = &a[g + part % 2 * 8][2 * t + part / 2 * 8];
      at[0] = LowBf16(words[part]);
      at[1] = HighBf16(words[part]);
    }
    for (std::uint32_t part = 0; part < 2; ++part) {
      b[2 * t + 8 * part][g] = LowBf16(words[4 + part]);
      b[2 * t + 1 + 8 * part][g] = HighBf16(words[4 + part]);
    }
    float values[4];
    std::memcpy(values, &words[6], sizeof(values));
    for (std::uint32_t i = 0; i < 4; ++i) sums[g + i / 2 * 8][2 * t + i % 2] = values[i];
  }
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t k = 0; k < 16; ++k) sums[row] = sums[row] + a[row][k] * b[k];
  }
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    float values[4];
    for (std::uint32_t i = 0; i < 4; ++i) {
      values[i] = sums[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
    }
    std::memcpy(out.lanes[lane].words.data(), values, sizeof(values));
  }
  emulation::CountMatrixMultiply();
}
#endif

// sums += a b over bf16: a 16 x 16, b 16 x 8, sums 16 x 8 in fp32. Of lane l, g = l / 4, t = l % 4:
// a holds the pairs at (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8); b_low those of column g
// at rows 2t and 2t + 1, b_high at 2t + 8 and 2t + 9. All 32 lanes call it.
PAGODA_DEVICE void MultiplyAdd(Sums4& sums, const Fragment4& a, std::uint32_t b_low,
                               std::uint32_t b_high PAGODA_SITE) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(sums.values[0]), "+f"(sums.values[1]), "+f"(sums.values[2]), "+f"(sums.values[3])
      : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b_low),
        "r"(b_high));
#else
  emulation::LaneData brought;
  std::memcpy(&brought.words[0], a.words, sizeof(a.words));
  brought.words[4] = b_low;
  brought.words[5] = b_high;
  std::memcpy(&brought.words[6], sums.values, sizeof(sums.values));
  const emulation::LaneData& taken = emulation::MeetWarp(emulation::WarpOperation::kMatrixMultiply,
                                                         kWarp, site, brought, CombineMultiply);
  std::memcpy(sums.values, taken.words.data(), sizeof(sums.values));
#endif
}

// --- numbers -----------------------------------------------------------------------------------

// Two numbers rounded to bf16, to nearest even; `low` in the low half. A NaN stays one.
PAGODA_DEVICE std::uint32_t PackBf16(float low, float high) {
#if defined(__CUDACC__)
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return base::Bf16FromFloat(low) | static_cast<std::uint32_t>(base::Bf16FromFloat(high)) << 16;
#endif
}

// Rounded once, subnormals kept, whatever the compiler's switches say.
PAGODA_DEVICE float Divide(float a, float b) {
#if defined(__CUDACC__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

PAGODA_DEVICE float SquareRoot(float x) {
#if defined(__CUDACC__)
  return __fsqrt_rn(x);
#else
  return std::sqrt(x);
#endif
}

// The greater; of a NaN and a number the number.
PAGODA_DEVICE float Greater(float a, float b) {
#if defined(__CUDACC__)
  return fmaxf(a, b);
#else
  return std::fmax(a, b);
#endif
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
