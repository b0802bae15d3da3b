#pragma once

#include <cstdint>
#include <cstring>

// 16 lanes in plain C++, for machines without AVX2, and so that the 16-lane kernels run under test
// everywhere. Same names as lanes_avx512.h; see lanes.h.
#if !defined(PAGODA_INSTRUCTION_CLASS)
#define PAGODA_INSTRUCTION_CLASS portable
#endif
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {

inline constexpr int kLanes = 16;
struct Float {
  float lane[kLanes];
};
struct Int {
  std::int32_t lane[kLanes];
};

// Calls function(i) for every lane.
template <typename Result, typename Function>
Result ForLanes(Function function) {
  Result result;
  for (int i = 0; i < kLanes; ++i) result.lane[i] = function(i);
  return result;
}

inline Float Broadcast(float v) {
  return ForLanes<Float>([=](int) { return v; });
}
inline Float Zero() { return Broadcast(0.0f); }
inline Float Load(const float* p) {
  return ForLanes<Float>([=](int i) { return p[i]; });
}
inline void Store(float* p, const Float& v) { std::memcpy(p, v.lane, sizeof(v)); }
inline Float operator+(const Float& a, const Float& b) {
  return ForLanes<Float>([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline Float operator-(const Float& a, const Float& b) {
  return ForLanes<Float>([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline Float operator*(const Float& a, const Float& b) {
  return ForLanes<Float>([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Float operator/(const Float& a, const Float& b) {
  return ForLanes<Float>([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline Float Fma(const Float& a, const Float& b, const Float& c) {
  return ForLanes<Float>([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}
inline Float Max(const Float& a, const Float& b) {
  return ForLanes<Float>([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline Float Min(const Float& a, const Float& b) {
  return ForLanes<Float>([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}

inline Float AsFloat(const Int& v) {
  Float result;
  std::memcpy(&result, &v, sizeof(v));
  return result;
}
inline Int AsInt(const Float& v) {
  Int result;
  std::memcpy(&result, &v, sizeof(v));
  return result;
}
inline Float ToFloat(const Int& v) {
  return ForLanes<Float>([&](int i) { return static_cast<float>(v.lane[i]); });
}
inline Int RoundToInt(const Float& v) {
  return ForLanes<Int>(
      [&](int i) { return static_cast<std::int32_t>(__builtin_rintf(v.lane[i])); });
}
inline Float Select(const Int& mask, const Float& if_true, const Float& if_false) {
  return ForLanes<Float>(
      [&](int i) { return mask.lane[i] < 0 ? if_true.lane[i] : if_false.lane[i]; });
}
inline Int Less(const Float& a, const Float& b) {
  return ForLanes<Int>([&](int i) { return a.lane[i] < b.lane[i] ? -1 : 0; });
}
inline Int IsNan(const Float& v) {
  return ForLanes<Int>([&](int i) { return v.lane[i] != v.lane[i] ? -1 : 0; });
}

inline Int BroadcastInt(std::int32_t v) {
  return ForLanes<Int>([=](int) { return v; });
}
inline Int ZeroInt() { return BroadcastInt(0); }
inline Int LoadInt(const void* p) {
  Int result;
  std::memcpy(&result, p, sizeof(result));
  return result;
}
inline void StoreInt(void* p, const Int& v) { std::memcpy(p, v.lane, sizeof(v)); }
// Modulo 2^32.
inline Int AddInt(const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.lane[i]) +
                                     static_cast<std::uint32_t>(b.lane[i]));
  });
}
inline Int SubInt(const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.lane[i]) -
                                     static_cast<std::uint32_t>(b.lane[i]));
  });
}
inline Int MulInt(const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Int And(const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) { return a.lane[i] & b.lane[i]; });
}
inline Int Or(const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) { return a.lane[i] | b.lane[i]; });
}
inline Int MaxInt(const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline Int Xor(const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) { return a.lane[i] ^ b.lane[i]; });
}
template <int kBits>
Int ShiftLeft(const Int& v) {
  return ForLanes<Int>([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(v.lane[i]) << kBits);
  });
}
template <int kBits>
Int ShiftRight(const Int& v) {
  return ForLanes<Int>([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(v.lane[i]) >> kBits);
  });
}
inline Int ShiftRightBy(const Int& v, int bits) {
  return ForLanes<Int>([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(v.lane[i]) >> bits);
  });
}
template <int kBits>
Int ShiftRightSigned(const Int& v) {
  return ForLanes<Int>([&](int i) { return v.lane[i] >> kBits; });
}

inline float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  std::uint32_t bits = 0;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    std::memcpy(&bits, &magnitude, sizeof(bits));
  } else {
    bits = ((exponent == 31 ? 0xffu : exponent + 112u) << 23) | (mantissa << 13);
  }
  bits |= sign;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}
inline Float LoadHalf(const void* p) {
  std::uint16_t halves[kLanes];
  std::memcpy(halves, p, sizeof(halves));
  return ForLanes<Float>([&](int i) { return HalfToFloat(halves[i]); });
}
// bf16 numbers at p, widened.
inline Float LoadBf16(const void* p) {
  std::uint16_t values[kLanes];
  std::memcpy(values, p, sizeof(values));
  return AsFloat(ForLanes<Int>([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(values[i]) << 16);
  }));
}
inline Int LoadBytes(const void* p) {
  std::int8_t values[kLanes];
  std::memcpy(values, p, sizeof(values));
  return ForLanes<Int>([&](int i) { return std::int32_t{values[i]}; });
}
inline void StoreLowBytes(void* p, const Int& v) {
  std::int8_t values[kLanes];
  for (int i = 0; i < kLanes; ++i) values[i] = static_cast<std::int8_t>(v.lane[i]);
  std::memcpy(p, values, sizeof(values));
}
inline Int BroadcastBytes(const std::int8_t* p) {
  std::int32_t bytes;
  std::memcpy(&bytes, p, sizeof(bytes));
  return BroadcastInt(bytes);
}

inline std::int32_t SignedByte(std::int32_t word, int index) {
  return static_cast<std::int8_t>(static_cast<std::uint32_t>(word) >> (8 * index));
}
// Lane i of sum + the product of 4 bytes with 4 bytes. Bytes above 127 are negative; nibbles never
// are.
inline Int AddByteProducts(const Int& sum, const Int& a, const Int& b) {
  return ForLanes<Int>([&](int i) {
    std::int32_t total = sum.lane[i];
    for (int j = 0; j < 4; ++j) total += SignedByte(a.lane[i], j) * SignedByte(b.lane[i], j);
    return total;
  });
}
struct NibbleSum {
  static constexpr int kTileVectors = 2;
  Int sum = ZeroInt();
  void Add(const Int& nibbles, const Int& bytes) { sum = AddByteProducts(sum, nibbles, bytes); }
  Int Total() const { return sum; }
};
struct PairSum {
  static constexpr int kTileVectors = 2;
  Int sum = ZeroInt();
  void Add(const Int& numbers, const Int& bytes, const Int& more_numbers, const Int& more_bytes) {
    sum = AddByteProducts(AddByteProducts(sum, numbers, bytes), more_numbers, more_bytes);
  }
  Int Total() const { return sum; }
};
class ByteRow {
 public:
  void Set(const std::int8_t* bytes) { std::memcpy(words_, bytes, sizeof(words_)); }
  Int Broadcast(int group) const { return BroadcastInt(words_[group]); }

 private:
  std::int32_t words_[8];
};
struct ByteSum {
  static constexpr int kTileVectors = 2;
  using Weights = Int;
  Int sum = ZeroInt();
  static Weights Prepare(const void* bytes) { return LoadInt(bytes); }
  void Add(const Weights& weights, const Int& bytes) { sum = AddByteProducts(sum, weights, bytes); }
  Int Total(std::int32_t /*activation_sum*/) const { return sum; }
};

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
