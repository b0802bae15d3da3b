#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lanes.h"

// Products of fp32 activations with one panel of any format. A lane is an output; the weight is
// widened exactly in the register and one fma per input follows, inputs ascending, as
// kernels/README.md asks.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {
namespace {

constexpr int kPanelVectors = 32 / kLanes;
constexpr int kVectors = kPanelVectors > 2 ? 2 : kPanelVectors;
constexpr int kHalfBytes = 2;
constexpr int kScaleBytes = 32 * kHalfBytes;

// Calls use(i, weight) with the weights of inputs i = 0 ... 31 of a block, in order, for the
// outputs of one register; `column` is its first output.
template <ElementType kFormat>
struct Block;

template <>
struct Block<ElementType::kF32> {
  static constexpr std::int64_t kBytes = 32 * 32 * 4;
  static Float Weight(const std::byte* block, int column, int i) {
    return Load(reinterpret_cast<const float*>(block) + i * 32 + column);
  }
};
template <>
struct Block<ElementType::kF16> {
  static constexpr std::int64_t kBytes = 32 * 32 * 2;
  static Float Weight(const std::byte* block, int column, int i) {
    return LoadHalf(block + (i * 32 + column) * 2);
  }
};
template <>
struct Block<ElementType::kBf16> {
  static constexpr std::int64_t kBytes = 32 * 32 * 2;
  static Float Weight(const std::byte* block, int column, int i) {
    const Int pair = LoadInt(block + ((i / 2) * 32 + column) * 4);
    return AsFloat(i % 2 == 0 ? ShiftLeft<16>(pair) : And(pair, BroadcastInt(-0x10000)));
  }
};

// Byte j of every lane, of 4.
template <bool kSigned>
inline Int ByteOf(Int word, int j) {
  switch (j) {
    case 0:
      word = ShiftLeft<24>(word);
      break;
    case 1:
      word = ShiftLeft<16>(word);
      break;
    case 2:
      word = ShiftLeft<8>(word);
      break;
    default:
      break;
  }
  return kSigned ? ShiftRightSigned<24>(word) : ShiftRight<24>(word);
}

inline Int Nibble(const std::byte* nibbles, int column, int i) {
  const int group = (i % 16) / 4;
  const Int byte = ByteOf<false>(LoadInt(nibbles + (group * 32 + column) * 4), i % 4);
  return i < 16 ? And(byte, BroadcastInt(15)) : ShiftRight<4>(byte);
}

template <>
struct Block<ElementType::kQ4_0> {
  static constexpr std::int64_t kBytes = 18 * 32;
  static Float Weight(const std::byte* block, int column, int i) {
    const Int q = SubInt(Nibble(block + kScaleBytes, column, i), BroadcastInt(8));
    return LoadHalf(block + column * kHalfBytes) * ToFloat(q);
  }
};
template <>
struct Block<ElementType::kQ4_1> {
  static constexpr std::int64_t kBytes = 20 * 32;
  static Float Weight(const std::byte* block, int column, int i) {
    const Int q = Nibble(block + 2 * kScaleBytes, column, i);
    return LoadHalf(block + column * kHalfBytes) * ToFloat(q) +
           LoadHalf(block + kScaleBytes + column * kHalfBytes);
  }
};
template <>
struct Block<ElementType::kQ8_0> {
  static constexpr std::int64_t kBytes = 34 * 32;
  static Float Weight(const std::byte* block, int column, int i) {
    const Int word = LoadInt(block + kScaleBytes + ((i / 4) * 32 + column) * 4);
    return LoadHalf(block + column * kHalfBytes) * ToFloat(ByteOf<true>(word, i % 4));
  }
};

template <ElementType kFormat, int kRows>
__attribute__((noinline)) void MultiplyRows(const PanelJob& job, std::int64_t row) {
  alignas(64) float out[kRows][32];
  for (int first = 0; first < kPanelVectors; first += kVectors) {
    Float acc[kRows][kVectors];
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) acc[r][v] = Zero();
    }
    const float* x = job.float_rows.data + row * job.float_rows.stride;
    for (std::int64_t k = 0; k < job.num_inputs; k += kQuantBlock) {
      const std::byte* block = job.panel + k / kQuantBlock * Block<kFormat>::kBytes;
      PAGODA_UNROLL
      for (int i = 0; i < 32; ++i) {
        Float weight[kVectors];
        PAGODA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          weight[v] = Block<kFormat>::Weight(block, (first + v) * kLanes, i);
        }
        PAGODA_UNROLL
        for (int r = 0; r < kRows; ++r) {
          const Float value = Broadcast(x[r * job.float_rows.stride + k + i]);
          PAGODA_UNROLL
          for (int v = 0; v < kVectors; ++v) acc[r][v] = Fma(value, weight[v], acc[r][v]);
        }
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) Store(&out[r][(first + v) * kLanes], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) StorePanelRow(job, row + r, out[r]);
}

template <ElementType kFormat>
void MultiplyFormat(const PanelJob& job) {
  std::int64_t row = 0;
  for (; row + 4 <= job.num_rows; row += 4) MultiplyRows<kFormat, 4>(job, row);
  for (; row + 2 <= job.num_rows; row += 2) MultiplyRows<kFormat, 2>(job, row);
  for (; row < job.num_rows; ++row) MultiplyRows<kFormat, 1>(job, row);
}

}  // namespace

void MultiplyFloat(const PanelJob& job) {
  switch (job.format) {
    case ElementType::kF32:
      return MultiplyFormat<ElementType::kF32>(job);
    case ElementType::kF16:
      return MultiplyFormat<ElementType::kF16>(job);
    case ElementType::kBf16:
      return MultiplyFormat<ElementType::kBf16>(job);
    case ElementType::kQ4_0:
      return MultiplyFormat<ElementType::kQ4_0>(job);
    case ElementType::kQ4_1:
      return MultiplyFormat<ElementType::kQ4_1>(job);
    case ElementType::kQ8_0:
      return MultiplyFormat<ElementType::kQ8_0>(job);
  }
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
