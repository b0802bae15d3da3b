#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

// The registers of AVX2 with FMA and F16C, 8 lanes. Same names as lanes_avx512.h; see lanes.h.
// Empty unless compiled for them.
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#if !defined(PAGODA_INSTRUCTION_CLASS)
#define PAGODA_INSTRUCTION_CLASS portable
#endif
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {

inline constexpr int kLanes = 8;
using Float = __m256;
using Int = __m256i;

inline Float Zero() { return _mm256_setzero_ps(); }
inline Float Load(const float* p) { return _mm256_loadu_ps(p); }
inline void Store(float* p, Float v) { _mm256_storeu_ps(p, v); }
inline Float Broadcast(float v) { return _mm256_set1_ps(v); }
inline Float Fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
// a > b ? a : b, so b where one is NaN.
inline Float Max(Float a, Float b) { return _mm256_max_ps(a, b); }
inline Float Min(Float a, Float b) { return _mm256_min_ps(a, b); }
inline Float LoadHalf(const void* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline Float ToFloat(Int v) { return _mm256_cvtepi32_ps(v); }
// To nearest, ties to even.
inline Int RoundToInt(Float v) { return _mm256_cvtps_epi32(v); }
inline Float AsFloat(Int v) { return _mm256_castsi256_ps(v); }
inline Int AsInt(Float v) { return _mm256_castps_si256(v); }
// Lane i: if_true where mask's lane is all ones, else if_false.
inline Float Select(Int mask, Float if_true, Float if_false) {
  return _mm256_blendv_ps(if_false, if_true, AsFloat(mask));
}
inline Int Less(Float a, Float b) { return AsInt(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }

inline Int IsNan(Float v) { return AsInt(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)); }

inline Int ZeroInt() { return _mm256_setzero_si256(); }
inline Int LoadInt(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void StoreInt(void* p, Int v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline Int BroadcastInt(std::int32_t v) { return _mm256_set1_epi32(v); }
inline Int AddInt(Int a, Int b) { return _mm256_add_epi32(a, b); }
inline Int SubInt(Int a, Int b) { return _mm256_sub_epi32(a, b); }
inline Int MulInt(Int a, Int b) { return _mm256_mullo_epi32(a, b); }
inline Int And(Int a, Int b) { return _mm256_and_si256(a, b); }
inline Int Or(Int a, Int b) { return _mm256_or_si256(a, b); }
inline Int MaxInt(Int a, Int b) { return _mm256_max_epi32(a, b); }
inline Int Xor(Int a, Int b) { return _mm256_xor_si256(a, b); }
template <int kBits>
Int ShiftLeft(Int v) {
  return _mm256_slli_epi32(v, kBits);
}
template <int kBits>
Int ShiftRight(Int v) {  // zeros come in
  return _mm256_srli_epi32(v, kBits);
}
inline Int ShiftRightBy(Int v, int bits) { return _mm256_srl_epi32(v, _mm_cvtsi32_si128(bits)); }
template <int kBits>
Int ShiftRightSigned(Int v) {
  return _mm256_srai_epi32(v, kBits);
}

// bf16 numbers at p, widened.
inline Float LoadBf16(const void* p) {
  const __m128i values = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return AsFloat(_mm256_slli_epi32(_mm256_cvtepu16_epi32(values), 16));
}
// Signed bytes at p, widened.
inline Int LoadBytes(const void* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
// The low byte of every lane. Requires: each fits a signed byte.
inline void StoreLowBytes(void* p, Int v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packs_epi16(words, words));
}
// 4 bytes at p in every lane.
inline Int BroadcastBytes(const std::int8_t* p) {
  std::int32_t bytes;
  std::memcpy(&bytes, p, sizeof(bytes));
  return _mm256_set1_epi32(bytes);
}

// Sums of products of 4 nibbles (0 ... 15) with 4 signed bytes per lane, up to 8 of them: 16-bit
// partial sums stay below 16 * 15 * 128.
struct NibbleSum {
  static constexpr int kTileVectors = 2;  // registers of outputs beside 4 rows that fit
  Int sum = _mm256_setzero_si256();
  void Add(Int nibbles, Int bytes) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(nibbles, bytes));
  }
  Int Total() const { return _mm256_madd_epi16(sum, _mm256_set1_epi16(1)); }
};

// Sums of products of numbers of up to 6 bits (0 ... 63) with signed bytes of at least -127, two
// groups of 4 per lane at a time: a 16-bit sum of 4 products stays below 4 * 63 * 127.
struct PairSum {
  static constexpr int kTileVectors = 2;
  Int sum = _mm256_setzero_si256();
  void Add(Int numbers, Int bytes, Int more_numbers, Int more_bytes) {
    const Int products = _mm256_add_epi16(_mm256_maddubs_epi16(numbers, bytes),
                                          _mm256_maddubs_epi16(more_numbers, more_bytes));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  }
  Int Total() const { return sum; }
};

// The 32 activation bytes of a row's block, as ByteSum::Add takes them.
struct ByteRow {
  alignas(32) std::int16_t words[32];
  void Set(const std::int8_t* bytes) {
    const auto* halves = reinterpret_cast<const __m128i*>(bytes);
    StoreInt(words, _mm256_cvtepi8_epi16(_mm_loadu_si128(halves)));
    StoreInt(words + 16, _mm256_cvtepi8_epi16(_mm_loadu_si128(halves + 1)));
  }
  // Bytes 4 * group ... in every lane, or pair of lanes.
  Int Broadcast(int group) const {
    long long four;
    std::memcpy(&four, words + 4 * group, sizeof(four));
    return _mm256_set1_epi64x(four);
  }
};

// Sums of products of 4 signed bytes with 4 signed bytes per lane. Widened to 16 bits first: exact
// for every byte, -128 included, where the usual unsigned-times-signed product would saturate or
// lose the sign.
struct ByteSum {
  static constexpr int kTileVectors = 1;
  struct Weights {
    Int low, high;
  };
  Int low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
  static Weights Prepare(const void* bytes) {
    const auto* halves = static_cast<const __m128i*>(bytes);
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(halves)),
            _mm256_cvtepi8_epi16(_mm_loadu_si128(halves + 1))};
  }
  void Add(const Weights& weights, Int activation) {
    low = _mm256_add_epi32(low, _mm256_madd_epi16(weights.low, activation));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(weights.high, activation));
  }
  // activation_sum: of all activation bytes added, used by the form that must correct for an
  // offset.
  Int Total(std::int32_t /*activation_sum*/) const {
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
  }
};

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS

#endif
