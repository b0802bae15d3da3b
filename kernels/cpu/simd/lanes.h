#pragma once

// The registers that a kernel is written on. Every .cc of this folder is compiled once per
// instruction class, inside the namespace PAGODA_INSTRUCTION_CLASS, with the machine flags of that
// class; the header chosen here is the only difference in the source. Nothing here may depend on
// how many lanes there are except through kLanes.
//
// Files of this folder must not call inline functions of other folders or of the standard library:
// the linker keeps one copy of such a function for the whole program, and it could be the one with
// instructions that this machine lacks (tests/kernels/cpu/instruction_class_symbols looks for
// them).
#if !defined(PAGODA_INSTRUCTION_CLASS)
#define PAGODA_INSTRUCTION_CLASS portable
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include "kernels/cpu/simd/lanes_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "kernels/cpu/simd/lanes_avx2.h"
#else
#include "kernels/cpu/simd/lanes_portable.h"
#endif

// Unrolls the loop that follows; its bounds are constants.
#if defined(__clang__)
#define PAGODA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PAGODA_UNROLL _Pragma("GCC unroll 16")
#endif

// Keeps the loop that follows a loop: unrolled, its sums would be reordered out of their registers.
#if defined(__clang__)
#define PAGODA_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define PAGODA_NO_UNROLL _Pragma("GCC unroll 1")
#endif

namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {

// -v as the sign flipped, so that -(+0) is -0.
inline Float Negate(Float v) { return AsFloat(Xor(AsInt(v), BroadcastInt(-0x7fffffff - 1))); }

// Rounds to bf16, ties to even, and widens again. A NaN stays a NaN.
inline Float RoundToBf16(Float v) {
  const Int bits = AsInt(v);
  const Int odd = And(ShiftRight<16>(bits), BroadcastInt(1));
  const Int rounded = AddInt(bits, AddInt(odd, BroadcastInt(0x7fff)));
  return Select(IsNan(v), v, AsFloat(And(rounded, BroadcastInt(-0x10000))));
}

inline std::int32_t LargestLane(Int v) {
  std::int32_t lane[kLanes];
  StoreInt(lane, v);
  for (int width = kLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] = lane[i] > lane[i + width] ? lane[i] : lane[i + width];
  }
  return lane[0];
}
inline std::int32_t SumOfLanes(Int v) {
  std::int32_t lane[kLanes];
  StoreInt(lane, v);
  for (int width = kLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return lane[0];
}

// base::Exp in every lane, to the bit: the same operations in the same order.
inline Float Exp(Float x) {
  const Float lowest = Broadcast(-0x1.5d589ep+6f);
  const Float highest = Broadcast(0x1.62e42ep+6f);
  const Float round_to_integer = Broadcast(0x1.8p+23f);
  const Float clamped = Min(Max(x, lowest), highest);
  const Float shifted = Fma(clamped, Broadcast(0x1.715476p+0f), round_to_integer);
  const Float n = shifted - round_to_integer;
  Float r = Fma(n, Broadcast(-0x1.63p-1f), clamped);
  r = Fma(n, Broadcast(0x1.bd0106p-13f), r);
  Float p = Broadcast(0x1.6a23d0p-10f);
  p = Fma(p, r, Broadcast(0x1.123a20p-7f));
  p = Fma(p, r, Broadcast(0x1.5558f2p-5f));
  p = Fma(p, r, Broadcast(0x1.555492p-3f));
  p = Fma(p, r, Broadcast(0x1.fffffcp-2f));
  p = Fma(p, r, Broadcast(1.0f));
  p = Fma(p, r, Broadcast(1.0f));
  Float y = AsFloat(AddInt(AsInt(p), ShiftLeft<23>(AsInt(shifted))));
  y = Select(Less(x, lowest), Zero(), y);
  y = Select(Less(highest, x), Broadcast(__builtin_inff()), y);
  return Select(IsNan(x), x, y);
}

// base::Silu in every lane.
inline Float Silu(Float x) { return x / (Broadcast(1.0f) + Exp(Negate(x))); }

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
