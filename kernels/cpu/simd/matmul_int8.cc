#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lanes.h"

// Products of int8 activations with one panel of quantized weights. A lane is an output, so no sum
// crosses lanes: within a block of 32 inputs the sum is exact in integers, and one fma per block
// (two with a minimum) carries it into fp32, blocks ascending, as kernels/README.md asks. The
// number of rows and registers in a tile is free.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {
namespace {

constexpr int kPanelVectors = 32 / kLanes;
constexpr int kHalfBytes = 2;
// Bytes that a block of one format takes in a panel: scales of 32 outputs, then 32 x 32 weights.
constexpr int kScaleBytes = 32 * kHalfBytes;
constexpr int kNibbleBytes = 32 * 32 / 2;
// Far enough ahead that a block is in the first-level cache when its turn comes, near enough to
// stay there.
constexpr int kPrefetchBytes = 2048;

template <ElementType kFormat>
struct Form;

template <>
struct Form<ElementType::kQ4_0> {
  static constexpr bool kHasMinimum = false;
  static constexpr int kOffset = 8;
  static constexpr int kWeightsAt = kScaleBytes;
  static constexpr int kBlockBytes = kScaleBytes + kNibbleBytes;
};
template <>
struct Form<ElementType::kQ4_1> {
  static constexpr bool kHasMinimum = true;
  static constexpr int kOffset = 0;
  static constexpr int kWeightsAt = 2 * kScaleBytes;
  static constexpr int kBlockBytes = 2 * kScaleBytes + kNibbleBytes;
};
template <>
struct Form<ElementType::kQ8_0> {
  static constexpr bool kHasMinimum = false;
  static constexpr int kOffset = 0;
  static constexpr int kWeightsAt = kScaleBytes;
  static constexpr int kBlockBytes = kScaleBytes + 32 * 32;
};

template <int kRows, int kVectors>
struct Dots {
  Int value[kRows][kVectors];
};

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
  Dots<kRows, kVectors> dots;
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) dots.value[r][v] = sums[r][v].Total();
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

// Carries the dots of one block into the fp32 sums. `halves` are the scales of the first register's
// outputs; scales, sums and scaled_sums those of the first row.
template <ElementType kFormat, int kRows, int kVectors>
inline void AddBlock(const Dots<kRows, kVectors>& dots, const std::byte* halves,
                     const Int8Rows& rows, std::int64_t num_blocks, float (*acc)[32]) {
  using F = Form<kFormat>;
  PAGODA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const Float d = LoadHalf(halves + v * kLanes * kHalfBytes);
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Int dot = dots.value[r][v];
      const std::int64_t at = r * num_blocks;
      if constexpr (F::kOffset != 0) {
        dot = SubInt(dot, BroadcastInt(F::kOffset * rows.sums[at]));
      }
      float* sum = &acc[r][v * kLanes];
      Float next = Fma(d * Broadcast(rows.scales[at]), ToFloat(dot), Load(sum));
      if constexpr (F::kHasMinimum) {
        const Float minimum = LoadHalf(halves + kScaleBytes + v * kLanes * kHalfBytes);
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
  using F = Form<kFormat>;
  constexpr bool kBytes = kFormat == ElementType::kQ8_0;
  constexpr int kTileVectors = kBytes ? ByteSum::kTileVectors : NibbleSum::kTileVectors;
  constexpr int kVectors = kRows > 1 && kPanelVectors > kTileVectors ? kTileVectors : kPanelVectors;
  const std::int64_t num_inputs = job.num_inputs;
  const std::int64_t num_blocks = num_inputs / kQuantBlock;
  alignas(64) float acc[kRows][32] = {};
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const std::byte* block = job.panel + b * F::kBlockBytes;
    const std::int64_t at = row * num_blocks + b;
    const Int8Rows rows = {job.int8_rows.bytes + row * num_inputs + b * kQuantBlock,
                           job.int8_rows.scales + at, job.int8_rows.sums + at,
                           job.int8_rows.scaled_sums + at, num_inputs};
    if constexpr (kRows == 1) {
      PAGODA_UNROLL
      for (int line = 0; line < F::kBlockBytes; line += 64) {
        __builtin_prefetch(block + kPrefetchBytes + line);
      }
    }
    [[maybe_unused]] ByteRow byte_rows[kBytes ? kRows : 1];
    if constexpr (kBytes) {
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) byte_rows[r].Set(rows.bytes + r * num_inputs);
    }
    PAGODA_NO_UNROLL
    for (int first = 0; first < kPanelVectors; first += kVectors) {
      const std::byte* weights = block + F::kWeightsAt + first * kLanes * 4;
      Dots<kRows, kVectors> dots;
      if constexpr (kBytes) {
        dots = DotBytes<kRows, kVectors>(weights, byte_rows, rows.sums, num_blocks);
      } else {
        dots = DotNibbles<kRows, kVectors>(weights, rows.bytes, num_inputs);
      }
      const auto columns = reinterpret_cast<float(*)[32]>(&acc[0][first * kLanes]);
      AddBlock<kFormat, kRows, kVectors>(dots, block + first * kLanes * kHalfBytes, rows,
                                         num_blocks, columns);
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
    default:
      return MultiplyFormat<ElementType::kQ8_0>(job);
  }
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
