#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/panel_form.h"

// Products of int8 activations with one panel of quantized weights. A lane is an output, so no sum
// crosses lanes: within a block of 32 inputs the sum is exact in integers, and one fma per block
// (two with a minimum) carries it into fp32, blocks ascending, as kernels/README.md asks. The
// number of rows and registers in a tile is free.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {
namespace {

constexpr int kPanelVectors = 32 / kLanes;
// Far enough ahead that a block is in the first-level cache when its turn comes, near enough to
// stay there.
constexpr int kPrefetchBytes = 2048;

template <int kRows, int kVectors>
struct Dots {
  Int value[kRows][kVectors];
};

template <typename Sum, int kRows, int kVectors>
inline Dots<kRows, kVectors> Totals(const Sum (&sums)[kRows][kVectors]) {
  Dots<kRows, kVectors> dots;
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) dots.value[r][v] = sums[r][v].Total();
  }
  return dots;
}

// Adds, for each row, 4 bytes times `low` and the 4 bytes kApart further on times `high`.
template <int kApart, int kRows, int kVectors>
inline void AddPairs(const Int (&low)[kVectors], const Int (&high)[kVectors],
                     const std::int8_t* bytes, std::int64_t num_inputs,
                     PairSum (&sums)[kRows][kVectors]) {
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const Int first = BroadcastBytes(bytes + r * num_inputs);
    const Int second = BroadcastBytes(bytes + r * num_inputs + kApart);
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[r][v].Add(low[v], first, high[v], second);
  }
}

template <int kRows, int kVectors>
inline Dots<kRows, kVectors> DotNibbles(const std::byte* weights, const std::int8_t* bytes,
                                        std::int64_t num_inputs) {
  NibbleSum sums[kRows][kVectors];
  const Int mask = BroadcastInt(0x0f0f0f0f);
  PAGODA_NO_UNROLL
  for (int group = 0; group < 4; ++group) {
    Int low[kVectors], high[kVectors];
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Int packed = LoadInt(weights + (group * 32 + v * kLanes) * 4);
      low[v] = And(packed, mask);
      high[v] = And(ShiftRight<4>(packed), mask);
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const std::int8_t* row = bytes + r * num_inputs + group * 4;
      const Int first = BroadcastBytes(row);
      const Int second = BroadcastBytes(row + 16);
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v].Add(low[v], first);
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v].Add(high[v], second);
    }
  }
  return Totals(sums);
}

// The low or high nibbles of a register with upper bits put above them.
inline Int WithUpper(Int nibbles, Int upper, std::int32_t mask) {
  return Or(And(nibbles, BroadcastInt(0x0f0f0f0f)), And(upper, BroadcastInt(mask)));
}

// As the nibbles, with a word of fifth bits for each output. Shifted once a group, bits 0 and 4 of
// its bytes are the group's.
template <int kRows, int kVectors>
inline Dots<kRows, kVectors> DotFives(const std::byte* weights, const std::int8_t* bytes,
                                      std::int64_t num_inputs) {
  constexpr std::int32_t kMask = 0x10101010;
  PairSum sums[kRows][kVectors];
  Int fifths[kVectors];
  PAGODA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    fifths[v] = LoadInt(weights + kNibbleBytes + v * kLanes * 4);
  }
  PAGODA_NO_UNROLL
  for (int group = 0; group < 4; ++group) {
    Int low[kVectors], high[kVectors];
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Int packed = LoadInt(weights + group * kWordPlane + v * kLanes * 4);
      low[v] = WithUpper(packed, ShiftLeft<4>(fifths[v]), kMask);
      high[v] = WithUpper(ShiftRight<4>(packed), fifths[v], kMask);
      fifths[v] = ShiftRight<1>(fifths[v]);
    }
    AddPairs<16>(low, high, bytes + group * 4, num_inputs, sums);
  }
  return Totals(sums);
}

// 16 inputs of a block of six-bit elements: two groups of nibbles, a word of upper bits for each
// output.
template <int kRows, int kVectors>
inline Dots<kRows, kVectors> DotSixes(const std::byte* nibbles, const std::byte* upper_bits,
                                      const std::int8_t* bytes, std::int64_t num_inputs) {
  constexpr std::int32_t kMask = 0x30303030;
  PairSum sums[kRows][kVectors];
  Int upper[kVectors];
  PAGODA_UNROLL
  for (int v = 0; v < kVectors; ++v) upper[v] = LoadInt(upper_bits + v * kLanes * 4);
  PAGODA_NO_UNROLL
  for (int group = 0; group < 2; ++group) {
    Int low[kVectors], high[kVectors];
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Int packed = LoadInt(nibbles + group * kWordPlane + v * kLanes * 4);
      low[v] = WithUpper(packed, ShiftLeft<4>(upper[v]), kMask);
      high[v] = WithUpper(ShiftRight<4>(packed), ShiftLeft<2>(upper[v]), kMask);
      upper[v] = ShiftRight<4>(upper[v]);
    }
    AddPairs<4>(low, high, bytes + group * 8, num_inputs, sums);
  }
  return Totals(sums);
}

// A block of six-bit elements whose halves have a scale each: scales times dots, summed. At most
// 2 * 16 * 127 * 32 * 128 < 2^24, so that the sum is exact in fp32 too.
template <ElementType kFormat, int kRows, int kVectors>
inline Dots<kRows, kVectors> DotScaledHalves(const PanelBlock& block, const Int8Rows& rows,
                                             std::int64_t num_blocks, int column) {
  Dots<kRows, kVectors> dots;
  PAGODA_UNROLL
  for (int half = 0; half < 2; ++half) {
    const std::byte* elements = block.elements + column * 4;
    const Dots<kRows, kVectors> part = DotSixes<kRows, kVectors>(
        elements + half * 2 * kWordPlane, elements + kNibbleBytes + half * kWordPlane,
        rows.bytes + half * 16, rows.num_inputs);
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Int scale = LoadBytes(block.scales + half * kBytePlane + column + v * kLanes);
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t at = r * num_blocks;
        const std::int32_t sum =
            half == 0 ? rows.first_sums[at] : rows.sums[at] - rows.first_sums[at];
        const Int dot = SubInt(part.value[r][v], BroadcastInt(FormOf(kFormat).offset * sum));
        const Int scaled = MulInt(scale, dot);
        dots.value[r][v] = half == 0 ? scaled : AddInt(dots.value[r][v], scaled);
      }
    }
  }
  return dots;
}

template <int kRows, int kVectors>
inline Dots<kRows, kVectors> DotBytes(const std::byte* weights, const ByteRow (&rows)[kRows],
                                      const std::int32_t* row_sums, std::int64_t num_blocks) {
  ByteSum sums[kRows][kVectors];
  PAGODA_NO_UNROLL
  for (int group = 0; group < 8; ++group) {
    ByteSum::Weights prepared[kVectors];
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      prepared[v] = ByteSum::Prepare(weights + (group * 32 + v * kLanes) * 4);
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Int activation = rows[r].Broadcast(group);
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v].Add(prepared[v], activation);
    }
  }
  Dots<kRows, kVectors> dots;
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      dots.value[r][v] = sums[r][v].Total(row_sums[r * num_blocks]);
    }
  }
  return dots;
}

// Carries the dots of one block into the fp32 sums. `column` is the first output; scales, sums and
// scaled_sums are those of the first row.
template <ElementType kFormat, int kRows, int kVectors>
inline void AddBlock(const Dots<kRows, kVectors>& dots, const PanelBlock& block, int column,
                     const Int8Rows& rows, float (*acc)[32]) {
  constexpr PanelForm kForm = FormOf(kFormat);
  const std::int64_t num_blocks = rows.num_inputs / kQuantBlock;
  PAGODA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const Float d = ScaleOf<kFormat>(block, column + v * kLanes);
    [[maybe_unused]] Float minimum;
    if constexpr (kForm.has_minimum) minimum = MinimumOf<kFormat>(block, column + v * kLanes);
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Int dot = dots.value[r][v];
      const std::int64_t at = r * num_blocks;
      if constexpr (kForm.offset != 0 && !kForm.scaled_halves) {
        dot = SubInt(dot, BroadcastInt(kForm.offset * rows.sums[at]));
      }
      float* sum = &acc[r][column + v * kLanes];
      Float next = Fma(d * Broadcast(rows.scales[at]), ToFloat(dot), Load(sum));
      if constexpr (kForm.has_minimum) {
        next = Fma(minimum, Broadcast(rows.scaled_sums[at]), next);
      }
      Store(sum, next);
    }
  }
}

// kRows rows times one panel. The integer sums of a block stay in registers, for some registers of
// outputs at a time; the fp32 sums are touched once per block and live in the first-level cache.
template <ElementType kFormat, int kRows>
__attribute__((noinline)) void MultiplyRows(const PanelJob& job, std::int64_t row) {
  constexpr PanelForm kForm = FormOf(kFormat);
  constexpr bool kBytes = kForm.bits == 8;
  constexpr int kTileVectors = kBytes ? ByteSum::kTileVectors : NibbleSum::kTileVectors;
  constexpr int kVectors = kRows > 1 && kPanelVectors > kTileVectors ? kTileVectors : kPanelVectors;
  const std::int64_t num_inputs = job.num_inputs;
  const std::int64_t num_blocks = num_inputs / kQuantBlock;
  alignas(64) float acc[kRows][32] = {};
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const PanelBlock block = BlockOf<kFormat>(job.panel, b);
    const std::int64_t at = row * num_blocks + b;
    const Int8Rows rows = {job.int8_rows.bytes + row * num_inputs + b * kQuantBlock,
                           job.int8_rows.scales + at,
                           job.int8_rows.sums + at,
                           job.int8_rows.scaled_sums + at,
                           job.int8_rows.first_sums + at,
                           num_inputs};
    if constexpr (kRows == 1) {
      const std::byte* from = kForm.num_blocks == 1 ? block.halves : block.scales;
      for (int line = 0; line < kForm.block_bytes() + kForm.shared_bytes(); line += 64) {
        __builtin_prefetch(from + kPrefetchBytes + line);
      }
    }
    [[maybe_unused]] ByteRow byte_rows[kBytes ? kRows : 1];
    if constexpr (kBytes) {
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) byte_rows[r].Set(rows.bytes + r * num_inputs);
    }
    PAGODA_NO_UNROLL
    for (int column = 0; column < 32; column += kVectors * kLanes) {
      const std::byte* weights = block.elements + column * 4;
      Dots<kRows, kVectors> dots;
      if constexpr (kBytes) {
        dots = DotBytes<kRows, kVectors>(weights, byte_rows, rows.sums, num_blocks);
      } else if constexpr (kForm.scaled_halves) {
        dots = DotScaledHalves<kFormat, kRows, kVectors>(block, rows, num_blocks, column);
      } else if constexpr (kForm.bits == 5) {
        dots = DotFives<kRows, kVectors>(weights, rows.bytes, num_inputs);
      } else {
        dots = DotNibbles<kRows, kVectors>(weights, rows.bytes, num_inputs);
      }
      AddBlock<kFormat, kRows, kVectors>(dots, block, column, rows, acc);
    }
  }
  for (int r = 0; r < kRows; ++r) StorePanelRow(job, row + r, acc[r]);
}

template <ElementType kFormat>
void MultiplyFormat(const PanelJob& job) {
  std::int64_t row = 0;
  for (; row + 4 <= job.num_rows; row += 4) MultiplyRows<kFormat, 4>(job, row);
  switch (job.num_rows - row) {
    case 3:
      return MultiplyRows<kFormat, 3>(job, row);
    case 2:
      return MultiplyRows<kFormat, 2>(job, row);
    case 1:
      return MultiplyRows<kFormat, 1>(job, row);
    default:
      return;
  }
}

}  // namespace

void MultiplyInt8(const PanelJob& job) {
  switch (job.format) {
    case ElementType::kQ4_0:
      return MultiplyFormat<ElementType::kQ4_0>(job);
    case ElementType::kQ4_1:
      return MultiplyFormat<ElementType::kQ4_1>(job);
    case ElementType::kQ5_0:
      return MultiplyFormat<ElementType::kQ5_0>(job);
    case ElementType::kQ5_1:
      return MultiplyFormat<ElementType::kQ5_1>(job);
    case ElementType::kQ4_K:
      return MultiplyFormat<ElementType::kQ4_K>(job);
    case ElementType::kQ5_K:
      return MultiplyFormat<ElementType::kQ5_K>(job);
    case ElementType::kQ6_K:
      return MultiplyFormat<ElementType::kQ6_K>(job);
    default:
      return MultiplyFormat<ElementType::kQ8_0>(job);
  }
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
