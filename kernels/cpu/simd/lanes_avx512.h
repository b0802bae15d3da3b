#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

// The registers of AVX-512 (F, BW, DQ, VL), 16 lanes, with the byte products of VNNI where they are
// compiled in. Same names as lanes_avx2.h; see lanes.h. Empty unless compiled for them.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#if !defined(PAGODA_INSTRUCTION_CLASS)
#define PAGODA_INSTRUCTION_CLASS portable
#endif
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {

inline constexpr int kLanes = 16;
using Float = __m512;
using Int = __m512i;

inline Float Zero() { return _mm512_setzero_ps(); }
inline Float Load(const float* p) { return _mm512_loadu_ps(p); }
inline void Store(float* p, Float v) { _mm512_storeu_ps(p, v); }
inline Float Broadcast(float v) { return _mm512_set1_ps(v); }
inline Float Fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
inline Float Max(Float a, Float b) { return _mm512_max_ps(a, b); }
inline Float Min(Float a, Float b) { return _mm512_min_ps(a, b); }
inline Float LoadHalf(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline Float ToFloat(Int v) { return _mm512_cvtepi32_ps(v); }
inline Int RoundToInt(Float v) { return _mm512_cvtps_epi32(v); }
inline Float AsFloat(Int v) { return _mm512_castsi512_ps(v); }
inline Int AsInt(Float v) { return _mm512_castps_si512(v); }
inline Float Select(Int mask, Float if_true, Float if_false) {
  return _mm512_mask_blend_ps(_mm512_movepi32_mask(mask), if_false, if_true);
}
inline Int Less(Float a, Float b) {
  return _mm512_movm_epi32(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ));
}

inline Int IsNan(Float v) { return _mm512_movm_epi32(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q)); }

inline Int ZeroInt() { return _mm512_setzero_si512(); }
inline Int LoadInt(const void* p) { return _mm512_loadu_si512(p); }
inline void StoreInt(void* p, Int v) { _mm512_storeu_si512(p, v); }
inline Int BroadcastInt(std::int32_t v) { return _mm512_set1_epi32(v); }
inline Int AddInt(Int a, Int b) { return _mm512_add_epi32(a, b); }
inline Int SubInt(Int a, Int b) { return _mm512_sub_epi32(a, b); }
inline Int MulInt(Int a, Int b) { return _mm512_mullo_epi32(a, b); }
inline Int And(Int a, Int b) { return _mm512_and_si512(a, b); }
inline Int Or(Int a, Int b) { return _mm512_or_si512(a, b); }
inline Int MaxInt(Int a, Int b) { return _mm512_max_epi32(a, b); }
inline Int Xor(Int a, Int b) { return _mm512_xor_si512(a, b); }
template <int kBits>
Int ShiftLeft(Int v) {
  return _mm512_slli_epi32(v, kBits);
}
template <int kBits>
Int ShiftRight(Int v) {
  return _mm512_srli_epi32(v, kBits);
}
inline Int ShiftRightBy(Int v, int bits) { return _mm512_srl_epi32(v, _mm_cvtsi32_si128(bits)); }
template <int kBits>
Int ShiftRightSigned(Int v) {
  return _mm512_srai_epi32(v, kBits);
}

inline Float LoadBf16(const void* p) {
  const __m256i values = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  return AsFloat(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}
inline Int LoadBytes(const void* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline void StoreLowBytes(void* p, Int v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
}
inline Int BroadcastBytes(const std::int8_t* p) {
  std::int32_t bytes;
  std::memcpy(&bytes, p, sizeof(bytes));
  return _mm512_set1_epi32(bytes);
}

#if defined(__AVX512VNNI__)

struct NibbleSum {
  static constexpr int kTileVectors = 2;
  Int sum = _mm512_setzero_si512();
  void Add(Int nibbles, Int bytes) { sum = _mm512_dpbusd_epi32(sum, nibbles, bytes); }
  Int Total() const { return sum; }
};

struct PairSum {
  static constexpr int kTileVectors = 2;
  Int sum = _mm512_setzero_si512();
  void Add(Int numbers, Int bytes, Int more_numbers, Int more_bytes) {
    sum = _mm512_dpbusd_epi32(sum, numbers, bytes);
    sum = _mm512_dpbusd_epi32(sum, more_numbers, more_bytes);
  }
  Int Total() const { return sum; }
};

struct ByteRow {
  const std::int8_t* bytes;
  void Set(const std::int8_t* row) { bytes = row; }
  Int Broadcast(int group) const { return BroadcastBytes(bytes + 4 * group); }
};

// The instruction takes unsigned weights: they are shifted by 128, and 128 times the sum of the
// activations goes again.
struct ByteSum {
  static constexpr int kTileVectors = 2;
  using Weights = Int;
  Int sum = _mm512_setzero_si512();
  static Weights Prepare(const void* bytes) {
    return _mm512_xor_si512(_mm512_loadu_si512(bytes), _mm512_set1_epi8(-128));
  }
  void Add(Weights weights, Int activation) { sum = _mm512_dpbusd_epi32(sum, weights, activation); }
  Int Total(std::int32_t activation_sum) const {
    return _mm512_sub_epi32(sum, _mm512_set1_epi32(128 * activation_sum));
  }
};

#else

struct ByteRow {
  alignas(64) std::int16_t words[32];
  void Set(const std::int8_t* bytes) {
    StoreInt(words,
             _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes))));
  }
  Int Broadcast(int group) const {
    long long four;
    std::memcpy(&four, words + 4 * group, sizeof(four));
    return _mm512_set1_epi64(four);
  }
};

struct NibbleSum {
  static constexpr int kTileVectors = 2;
  Int sum = _mm512_setzero_si512();
  void Add(Int nibbles, Int bytes) {
    sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(nibbles, bytes));
  }
  Int Total() const { return _mm512_madd_epi16(sum, _mm512_set1_epi16(1)); }
};

struct PairSum {
  static constexpr int kTileVectors = 2;
  Int sum = _mm512_setzero_si512();
  void Add(Int numbers, Int bytes, Int more_numbers, Int more_bytes) {
    const Int products = _mm512_add_epi16(_mm512_maddubs_epi16(numbers, bytes),
                                          _mm512_maddubs_epi16(more_numbers, more_bytes));
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(products, _mm512_set1_epi16(1)));
  }
  Int Total() const { return sum; }
};

struct ByteSum {
  static constexpr int kTileVectors = 2;
  struct Weights {
    Int low, high;
  };
  Int low = _mm512_setzero_si512(), high = _mm512_setzero_si512();
  static Weights Prepare(const void* bytes) {
    const auto* halves = static_cast<const __m256i*>(bytes);
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(halves)),
            _mm512_cvtepi8_epi16(_mm256_loadu_si256(halves + 1))};
  }
  void Add(const Weights& weights, Int activation) {
    low = _mm512_add_epi32(low, _mm512_madd_epi16(weights.low, activation));
    high = _mm512_add_epi32(high, _mm512_madd_epi16(weights.high, activation));
  }
  // Lane 2i and 2i + 1 of `low` are column i, of `high` column i + 8.
  Int Total(std::int32_t /*activation_sum*/) const {
    const Int even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const Int odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_add_epi32(_mm512_permutex2var_epi32(low, even, high),
                            _mm512_permutex2var_epi32(low, odd, high));
  }
};

#endif

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS

#endif
