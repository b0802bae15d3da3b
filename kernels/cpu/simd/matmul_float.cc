#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/panel_form.h"

// Products of fp32 activations with one panel of any format. A lane is an output; the weights are
// widened as kernels/README.md part 4 has it and one fma per input follows, inputs ascending.
// Floats are widened in the register; the blocks of quantized formats into memory, once for several
// rows.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {
namespace {

constexpr int kPanelVectors = 32 / kLanes;
constexpr int kVectors = kPanelVectors > 2 ? 2 : kPanelVectors;

// The weight of input i of a block of 32 for the outputs of one register; `column` is its first
// output.
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

// The stored number of input i of a block, for the outputs of one register, whose words `elements`
// begins with.
template <ElementType kFormat>
inline Int Element(const std::byte* elements, int i) {
  constexpr PanelForm kForm = FormOf(kFormat);
  const int bit = i % 4 * 8;  // of byte i % 4 in a word
  if constexpr (kForm.bits == 8) {
    const Int word = ShiftRightBy(LoadInt(elements + i / 4 * kWordPlane), bit);
    return ShiftRightSigned<24>(ShiftLeft<24>(word));
  }
  constexpr bool kSix = kForm.bits == 6;
  const int group = kSix ? i / 8 : i % 16 / 4;
  const int nibble = kSix ? i % 8 / 4 : i / 16;
  const Int low =
      And(ShiftRightBy(LoadInt(elements + group * kWordPlane), bit + nibble * 4), BroadcastInt(15));
  if constexpr (kForm.bits == 4) return low;
  const int plane = kSix ? i / 16 : 0;
  const int upper_bit = bit + (kSix ? i % 16 / 4 * 2 : i / 16 * 4 + i % 16 / 4);
  const Int upper = ShiftRightBy(LoadInt(elements + kNibbleBytes + plane * kWordPlane), upper_bit);
  return Or(low, ShiftLeft<4>(And(upper, BroadcastInt(kSix ? 3 : 1))));
}

// Block `index` of a panel as floats.
template <ElementType kFormat>
void Widen(const std::byte* panel, std::int64_t index, float (*out)[32]) {
  constexpr PanelForm kForm = FormOf(kFormat);
  const PanelBlock block = BlockOf<kFormat>(panel, index);
  for (int column = 0; column < 32; column += kLanes) {
    Float scale[2];
    scale[0] = scale[1] = ScaleOf<kFormat>(block, column);
    if constexpr (kForm.scaled_halves) {
      scale[0] = scale[0] * ToFloat(LoadBytes(block.scales + column));
      scale[1] = scale[1] * ToFloat(LoadBytes(block.scales + kBytePlane + column));
    }
    PAGODA_NO_UNROLL
    for (int i = 0; i < 32; ++i) {
      const Int q = Element<kFormat>(block.elements + column * 4, i);
      Float weight = scale[i / 16] * ToFloat(SubInt(q, BroadcastInt(kForm.offset)));
      if constexpr (kForm.has_minimum) weight = weight + MinimumOf<kFormat>(block, column);
      Store(&out[i][column], weight);
    }
  }
}

// acc += x * weights for kRows rows and 32 inputs.
template <int kRows>
__attribute__((noinline)) void AddWidened(const float* x, std::int64_t stride,
                                          const float (*weights)[32], float (*acc)[32]) {
  PAGODA_NO_UNROLL
  for (int column = 0; column < 32; column += kVectors * kLanes) {
    Float sums[kRows][kVectors];
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Load(&acc[r][column + v * kLanes]);
    }
    PAGODA_NO_UNROLL
    for (int i = 0; i < 32; ++i) {
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Float value = Broadcast(x[r * stride + i]);
        PAGODA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = Fma(value, Load(&weights[i][column + v * kLanes]), sums[r][v]);
        }
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) Store(&acc[r][column + v * kLanes], sums[r][v]);
    }
  }
}

// Rows that share one widening of a block; their sums stay in the first-level cache.
constexpr std::int64_t kWidenedRows = 16;

void MultiplyWidened(const PanelJob& job,
                     void (*widen)(const std::byte*, std::int64_t, float (*)[32])) {
  for (std::int64_t first = 0; first < job.num_rows; first += kWidenedRows) {
    const std::int64_t left = job.num_rows - first;
    const std::int64_t count = left < kWidenedRows ? left : kWidenedRows;
    alignas(64) float acc[kWidenedRows][32] = {};
    for (std::int64_t b = 0; b < job.num_inputs / kQuantBlock; ++b) {
      alignas(64) float weights[32][32];
      widen(job.panel, b, weights);
      const std::int64_t stride = job.float_rows.stride;
      const float* x = job.float_rows.data + first * stride + b * kQuantBlock;
      std::int64_t r = 0;
      for (; r + 4 <= count; r += 4) AddWidened<4>(x + r * stride, stride, weights, acc + r);
      for (; r < count; ++r) AddWidened<1>(x + r * stride, stride, weights, acc + r);
    }
    for (std::int64_t r = 0; r < count; ++r) StorePanelRow(job, first + r, acc[r]);
  }
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
      return MultiplyWidened(job, Widen<ElementType::kQ4_0>);
    case ElementType::kQ4_1:
      return MultiplyWidened(job, Widen<ElementType::kQ4_1>);
    case ElementType::kQ5_0:
      return MultiplyWidened(job, Widen<ElementType::kQ5_0>);
    case ElementType::kQ5_1:
      return MultiplyWidened(job, Widen<ElementType::kQ5_1>);
    case ElementType::kQ8_0:
      return MultiplyWidened(job, Widen<ElementType::kQ8_0>);
    case ElementType::kQ4_K:
      return MultiplyWidened(job, Widen<ElementType::kQ4_K>);
    case ElementType::kQ5_K:
      return MultiplyWidened(job, Widen<ElementType::kQ5_K>);
    case ElementType::kQ6_K:
      return MultiplyWidened(job, Widen<ElementType::kQ6_K>);
  }
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
