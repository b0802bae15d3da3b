#pragma once

// What a check of scripts/gpu-check says, and what all of them use. Standard library only.
//
// A Machine has  T* Allocate<T>(count)                   zeroed, readable and writable from both
// sides
//                std::string Launch<kernel>(grid, threads, shared_bytes, arguments)   "" or the
//                error

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bits.h"

namespace pagoda::kernels::cuda {}

namespace pagoda::gpu_check {

namespace cuda = kernels::cuda;

struct Outcome {
  std::string name;
  bool passed = false;
  std::string detail;
  // What went in and came out, where the bits are the machine's own: one case a line.
  std::vector<std::string> vectors = {};
};

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// NaNs are all the same.
inline bool SameBits(float a, float b) {
  if (a != a || b != b) return a != a && b != b;
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

inline std::string Count(std::int64_t wrong, std::int64_t total) {
  return std::to_string(wrong) + " of " + std::to_string(total) + " differ";
}

template <typename Word>
std::string Hexadecimal(const Word* words, int count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < count; ++i) {
    const auto bits =
        std::bit_cast<std::conditional_t<sizeof(Word) == 4, std::uint32_t, std::uint16_t>>(
            words[i]);
    for (int shift = 8 * static_cast<int>(sizeof(Word)) - 4; shift >= 0; shift -= 4) {
      text += kDigits[bits >> shift & 15];
    }
  }
  return text;
}

inline void FillBf16(std::uint16_t* data, std::int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < count; ++i) data[i] = base::Bf16FromFloat(normal(random));
}

inline void FillNormal(float* data, std::int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < count; ++i) data[i] = normal(random);
}

}  // namespace pagoda::gpu_check
