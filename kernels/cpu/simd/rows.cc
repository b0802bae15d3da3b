#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lanes.h"

// Kernels over one row: norm, quantization, element-wise work. Orders are those of
// kernels/README.md part 3.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {
namespace {

constexpr int kNormLanes = 32;
constexpr int kNormVectors = kNormLanes / kLanes;
constexpr std::int32_t kMagnitudeBits = 0x7fffffff;
constexpr std::int32_t kInfinityBits = 0x7f800000;
constexpr std::int32_t kTinyBits = (127 - 100) << 23;  // 2^-100

// out[i] = function(i, number of lanes that count); the last piece goes through a padded copy.
template <typename Function>
void ForVectors(std::int64_t count, float* out, Function function) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(out + i, function(i, kLanes));
  if (i == count) return;
  float tail[kLanes];
  Store(tail, function(i, static_cast<int>(count - i)));
  for (int lane = 0; i + lane < count; ++lane) out[i + lane] = tail[lane];
}

Float LoadFirst(const float* p, int count) {
  if (count == kLanes) return Load(p);
  float padded[kLanes] = {};
  for (int lane = 0; lane < count; ++lane) padded[lane] = p[lane];
  return Load(padded);
}

float Tree(float (&lane)[kNormLanes]) {
  for (int width = kNormLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] = lane[i] + lane[i + width];
  }
  return lane[0];
}

std::int32_t TopMagnitude(const float* in) {
  const Int magnitude = BroadcastInt(kMagnitudeBits);
  Int top = And(AsInt(Load(in)), magnitude);
  PAGODA_UNROLL
  for (int i = kLanes; i < kQuantBlock; i += kLanes) {
    top = MaxInt(top, And(AsInt(Load(in + i)), magnitude));
  }
  return LargestLane(top);
}

struct BlockSums {
  std::int32_t whole = 0;
  std::int32_t first = 0;  // of 16
};

BlockSums QuantizeBlock(const float* in, std::int8_t* bytes, float* scale) {
  const std::int32_t top_bits = TopMagnitude(in);
  if (top_bits >= kInfinityBits || top_bits < kTinyBits) {
    for (int i = 0; i < kQuantBlock; ++i) bytes[i] = 0;
    *scale = top_bits < kTinyBits ? 0.0f : __builtin_nanf("");
    return {};
  }
  float top;
  __builtin_memcpy(&top, &top_bits, sizeof(top));
  const Float inverse = Broadcast(127.0f / top);
  Int total[2] = {ZeroInt(), ZeroInt()};
  PAGODA_UNROLL
  for (int i = 0; i < kQuantBlock; i += kLanes) {
    const Int rounded = RoundToInt(Load(in + i) * inverse);
    StoreLowBytes(bytes + i, rounded);
    total[i / 16] = AddInt(total[i / 16], rounded);
  }
  *scale = top / 127.0f;
  const std::int32_t first = SumOfLanes(total[0]);
  return {.whole = first + SumOfLanes(total[1]), .first = first};
}

}  // namespace

void QuantizeRow(const float* in, const Int8Rows& out) {
  for (std::int64_t b = 0; b < out.num_inputs / kQuantBlock; ++b) {
    const BlockSums sums =
        QuantizeBlock(in + b * kQuantBlock, out.bytes + b * kQuantBlock, &out.scales[b]);
    out.sums[b] = sums.whole;
    out.first_sums[b] = sums.first;
    out.scaled_sums[b] = out.scales[b] * static_cast<float>(out.sums[b]);
  }
}

void NormRow(const float* in, std::int64_t num_inputs, const RowNorm& norm, float* out) {
  Float sums[kNormVectors];
  PAGODA_UNROLL
  for (int v = 0; v < kNormVectors; ++v) sums[v] = Zero();
  std::int64_t k = 0;
  for (; k + kNormLanes <= num_inputs; k += kNormLanes) {
    PAGODA_UNROLL
    for (int v = 0; v < kNormVectors; ++v) {
      const Float x = Load(in + k + v * kLanes);
      sums[v] = Fma(x, x, sums[v]);
    }
  }
  float lane[kNormLanes];
  PAGODA_UNROLL
  for (int v = 0; v < kNormVectors; ++v) Store(lane + v * kLanes, sums[v]);
  for (int i = 0; k + i < num_inputs; ++i) {
    lane[i] = __builtin_fmaf(in[k + i], in[k + i], lane[i]);
  }
  const float mean = Tree(lane) / static_cast<float>(num_inputs);
  const Float inverse = Broadcast(1.0f / __builtin_sqrtf(mean + norm.epsilon));
  ForVectors(num_inputs, out, [&](std::int64_t i, int count) {
    return (LoadFirst(in + i, count) * inverse) * LoadFirst(norm.weight + i, count);
  });
}

void AddRow(const float* addend, std::int64_t count, float* inout) {
  ForVectors(count, inout, [&](std::int64_t i, int lanes) {
    return LoadFirst(inout + i, lanes) + LoadFirst(addend + i, lanes);
  });
}

void SiluMulRow(const float* gate, const float* up, std::int64_t count, float* out) {
  ForVectors(count, out, [&](std::int64_t i, int lanes) {
    return Silu(LoadFirst(gate + i, lanes)) * LoadFirst(up + i, lanes);
  });
}

void ExpRow(const float* in, std::int64_t count, float* out) {
  ForVectors(count, out, [&](std::int64_t i, int lanes) { return Exp(LoadFirst(in + i, lanes)); });
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
