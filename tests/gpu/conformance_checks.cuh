#pragma once

// The checks of scripts/gpu-check as host code over any machine that runs the kernels: a GPU, or
// the emulator, which must pass them too. Standard library only.
//
// A Machine has  T* Allocate<T>(count)                   zeroed, readable and writable from both
// sides
//                std::string Launch<kernel>(grid, threads, shared_bytes, arguments)   "" or the
//                error

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/decode.cuh"
#include "kernels/cuda/gemm.cuh"
#include "tests/gpu/conformance_kernels.cuh"

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

template <typename Machine>
Outcome CheckOperandSwap(Machine& machine) {
  constexpr int kCases = 64, kSteps = 6;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto* const a = machine.template Allocate<std::uint16_t>(kCases * kSteps * 256);
  auto* const b = machine.template Allocate<std::uint16_t>(kCases * kSteps * 128);
  auto* const c = machine.template Allocate<float>(kCases * 128);
  cuda::SwapArguments arguments = {.a = a, .b = b, .c = c};
  arguments.out = machine.template Allocate<float>(kCases * 128);
  arguments.swapped = machine.template Allocate<float>(kCases * 128);
  arguments.steps = kSteps;
  // Of very different sizes in every other case, so that the order of sums shows.
  const auto draw = [&](int number) {
    const float scale = number % 2 == 0 ? 1.0f : std::exp2(static_cast<float>(random() % 24) - 12);
    return normal(random) * scale;
  };
  for (int i = 0; i < kCases * kSteps * 256; ++i) {
    a[i] = base::Bf16FromFloat(draw(i / (kSteps * 256)));
  }
  for (int i = 0; i < kCases * kSteps * 128; ++i) {
    b[i] = base::Bf16FromFloat(draw(i / (kSteps * 128)));
  }
  for (int i = 0; i < kCases * 128; ++i) c[i] = draw(i / 128);
  Outcome outcome{"mma with operands exchanged has the same bits", false, ""};
  outcome.detail = machine.template Launch<&cuda::SwapOperands>({kCases}, 32, 0, arguments);
  if (!outcome.detail.empty()) return outcome;
  std::int64_t wrong = 0;
  for (int i = 0; i < kCases * 128; ++i) {
    wrong += SameBits(arguments.out[i], arguments.swapped[i]) ? 0 : 1;
  }
  constexpr int kRecorded = 16;
  for (int i = 0; i < kRecorded; ++i) {
    outcome.vectors.push_back(Hexadecimal(a + i * kSteps * 256, kSteps * 256) + " " +
                              Hexadecimal(b + i * kSteps * 128, kSteps * 128) + " " +
                              Hexadecimal(c + i * 128, 128) + " " +
                              Hexadecimal(arguments.out + i * 128, 128));
  }
  outcome.passed = wrong == 0;
  outcome.detail = Count(wrong, kCases * 128);
  return outcome;
}

template <typename Machine>
Outcome CheckMoves(Machine& machine) {
  auto* const in = machine.template Allocate<std::uint16_t>(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<std::uint16_t>(i * 257 + 5);
  cuda::MovesArguments arguments = {.in = in};
  arguments.plain = machine.template Allocate<std::uint32_t>(128);
  arguments.transposed = machine.template Allocate<std::uint32_t>(128);
  arguments.shuffled = machine.template Allocate<float>(160);
  arguments.filled = machine.template Allocate<std::uint32_t>(128);
  Outcome outcome{"matrix loads, copies with zero fill, shuffles", false, ""};
  outcome.detail =
      machine.template Launch<&cuda::MoveData>({1}, 32, cuda::kMovesSharedBytes, arguments);
  if (!outcome.detail.empty()) return outcome;
  std::int64_t wrong = 0;
  const auto word = [in](int low, int high) {
    return static_cast<std::uint32_t>(in[low]) | static_cast<std::uint32_t>(in[high]) << 16;
  };
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int m = 0; m < 4; ++m) {
      const int base = m * 64;
      wrong +=
          arguments.plain[lane * 4 + m] != word(base + g * 8 + 2 * t, base + g * 8 + 2 * t + 1);
      wrong += arguments.transposed[lane * 4 + m] !=
               word(base + 2 * t * 8 + g, base + (2 * t + 1) * 8 + g);
    }
    for (int i = 0; i < 5; ++i) {
      wrong += arguments.shuffled[i * 32 + lane] != static_cast<float>(lane ^ (1 << i));
    }
    for (int w = 0; w < 4; ++w) {
      const int at = lane * 8 + 2 * w;
      wrong += arguments.filled[lane * 4 + w] != (lane / 2 % 2 == 0 ? word(at, at + 1) : 0u);
    }
  }
  return {outcome.name, wrong == 0, Count(wrong, 32 * 17)};
}

template <typename Machine>
Outcome CheckNumbers(Machine& machine) {
  constexpr int kCount = 1 << 14;
  auto* const in = machine.template Allocate<float>(kCount);
  std::mt19937 random(2);
  for (int i = 0; i < kCount; ++i) {
    in[i] = i % 2 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                       : static_cast<float>(random() % 40'000) * 0.005f - 100.0f;
    // A float beyond int has no fraction to take.
    if (!(std::abs(in[i]) < 1e9f)) in[i] = static_cast<float>(i % 200) - 100.0f;
  }
  cuda::NumbersArguments arguments = {.in = in};
  arguments.out = machine.template Allocate<float>(kCount * cuda::kNumFunctions);
  arguments.words = machine.template Allocate<std::uint32_t>(kCount * 4);
  arguments.packed = machine.template Allocate<std::uint32_t>(kCount);
  arguments.count = kCount;
  Outcome outcome{"exact_math, Philox and bf16 rounding have the host's bits", false, ""};
  outcome.detail = machine.template Launch<&cuda::ComputeNumbers>(
      {kCount / cuda::kNumbersThreads}, cuda::kNumbersThreads, 0, arguments);
  if (!outcome.detail.empty()) return outcome;
  std::int64_t wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    const cuda::Numbers numbers = cuda::ExactNumbers(in[i]);
    for (int f = 0; f < cuda::kNumFunctions; ++f) {
      wrong += !SameBits(arguments.out[i * cuda::kNumFunctions + f], numbers.values[f]);
    }
    const auto word = static_cast<std::uint32_t>(i);
    const auto words = base::Philox4x32({word, word + 1, word + 2, word + 3}, word);
    for (int w = 0; w < 4; ++w) {
      wrong += arguments.words[i * 4 + w] != words[static_cast<std::size_t>(w)];
    }
    const std::uint32_t packed =
        base::Bf16FromFloat(in[i]) | static_cast<std::uint32_t>(base::Bf16FromFloat(-in[i])) << 16;
    wrong += arguments.packed[i] != packed;
  }
  return {outcome.name, wrong == 0, Count(wrong, std::int64_t{kCount} * (cuda::kNumFunctions + 5))};
}

inline void FillBf16(std::uint16_t* data, std::int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < count; ++i) data[i] = base::Bf16FromFloat(normal(random));
}

// Rows of the product for some numbers of rows by both forms, and against double.
template <typename Machine>
Outcome CheckGemm(Machine& machine) {
  constexpr int kRows = 130, kOutputs = 100, kInputs = 224;
  std::mt19937 random(3);
  auto* const x = machine.template Allocate<std::uint16_t>(kRows * kInputs);
  auto* const w = machine.template Allocate<std::uint16_t>(kOutputs * kInputs);
  FillBf16(x, kRows * kInputs, random);
  FillBf16(w, kOutputs * kInputs, random);
  float* const few = machine.template Allocate<float>(kRows * kOutputs);
  float* const many = machine.template Allocate<float>(kRows * kOutputs);
  Outcome outcome{"matrix products: both forms, any number of rows", false, ""};
  std::int64_t wrong = 0, total = 0;
  for (const int rows : {130, 1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 128, 129}) {
    cuda::GemmArguments arguments = {.x = x, .w = w, .out = {few, kOutputs}, .x_stride = kInputs};
    arguments.rows = rows;
    arguments.outputs = kOutputs;
    arguments.inputs = kInputs;
    const auto blocks = static_cast<unsigned>(base::DivUp(kOutputs, 64));
    outcome.detail = machine.template Launch<&cuda::GemmFewRows>(
        {blocks, static_cast<unsigned>(base::DivUp(rows, 8))}, cuda::GemmShape::kThreads,
        cuda::kGemmFewRows.SharedBytes(), arguments);
    if (!outcome.detail.empty()) return outcome;
    // The first time all rows: what the others are compared with.
    if (rows == kRows) {
      arguments.out.data = many;
      outcome.detail = machine.template Launch<&cuda::GemmManyRows>(
          {blocks, static_cast<unsigned>(base::DivUp(rows, 64))}, cuda::GemmShape::kThreads,
          cuda::kGemmManyRows.SharedBytes(), arguments);
      if (!outcome.detail.empty()) return outcome;
    }
    for (int i = 0; i < rows * kOutputs; ++i) wrong += !SameBits(few[i], many[i]);
    total += rows * kOutputs;
  }
  double largest = 0;
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kOutputs; ++n) {
      double exact = 0, size = 0;
      for (int k = 0; k < kInputs; ++k) {
        const double product = double{base::FloatFromBf16(x[m * kInputs + k])} *
                               base::FloatFromBf16(w[n * kInputs + k]);
        exact += product;
        size += std::abs(product);
      }
      largest = std::max(largest, std::abs(many[m * kOutputs + n] - exact) / size);
    }
  }
  outcome.passed = wrong == 0 && largest <= 1e-6;
  outcome.detail = Count(wrong, total) + ", error " + std::to_string(largest * 1e9) + "e-9";
  return outcome;
}

// One sequence in scrambled blocks; the last row by the prefill and by the decode kernel, and
// against double.
template <typename Machine>
class AttentionCheck {
 public:
  static constexpr int kHeadSize = 64, kGroup = 3, kKvHeads = 2, kHeads = kGroup * kKvHeads;
  static constexpr int kBlockShift = 4, kMaxLength = 600, kNumBlocks = 40;

  explicit AttentionCheck(Machine& machine) : machine_(machine) {
    const std::int64_t elements = std::int64_t{kNumBlocks} * 2 * kBlockElements;
    pool_ = machine.template Allocate<std::uint16_t>(static_cast<std::size_t>(elements));
    FillBf16(pool_, elements, random_);
    query_ = machine.template Allocate<float>(kHeads * kHeadSize);
    table_ = machine.template Allocate<std::uint32_t>(kNumBlocks);
    found_ = machine.template Allocate<float>(kHeads * kHeadSize);
    wanted_ = machine.template Allocate<float>(kHeads * kHeadSize);
    std::normal_distribution<float> normal;
    for (int i = 0; i < kHeads * kHeadSize; ++i) {
      query_[i] = base::FloatFromBf16(base::Bf16FromFloat(normal(random_)));
    }
    for (std::uint32_t i = 0; i < kNumBlocks - 1; ++i) table_[i] = (i * 7) % (kNumBlocks - 1) + 1;
  }

  Outcome Run() {
    Outcome outcome{"attention: decode has the prefill's bits, both near double", false, ""};
    std::int64_t wrong = 0, total = 0;
    double largest = 0;
    for (const int length : {1, 2, 16, 17, 63, 64, 65, 255, 256, 257, 600}) {
      outcome.detail = RunLength(length);
      if (!outcome.detail.empty()) return outcome;
      for (int i = 0; i < kHeads * kHeadSize; ++i) wrong += !SameBits(found_[i], wanted_[i]);
      total += kHeads * kHeadSize;
      largest = std::max(largest, Error(length));
    }
    outcome.passed = wrong == 0 && largest <= 3e-3;
    outcome.detail = Count(wrong, total) + ", error " + std::to_string(largest * 1e6) + "e-6";
    return outcome;
  }

 private:
  static constexpr int kBlockElements = kKvHeads * (1 << kBlockShift) * kHeadSize;

  cuda::KvArguments Kv() const {
    const cuda::KvPlaneArguments key = {.base = reinterpret_cast<unsigned char*>(pool_),
                                        .block_stride = 4 * kBlockElements,
                                        .layer_stride = 0,
                                        .head_stride = 2 * (1 << kBlockShift) * kHeadSize,
                                        .token_stride = 2 * kHeadSize};
    cuda::KvPlaneArguments value = key;
    value.base += 2 * kBlockElements;
    return {.key = key, .value = value, .block_shift = kBlockShift};
  }

  std::string RunLength(int length) {
    auto* const items = machine_.template Allocate<cuda::AttentionItem>(1);
    auto* const tiles = machine_.template Allocate<cuda::AttentionTile>(1);
    items[0] = {.first_row = 0, .num_tokens = 1, .first_position = length - 1};
    cuda::AttentionArguments prefill = {.query = {query_, 0}, .out = {wanted_, 0}, .kv = Kv()};
    prefill.tiles = tiles;
    prefill.items = items;
    prefill.block_table = table_;
    prefill.group = kGroup;
    prefill.scale = kScale;
    constexpr cuda::AttentionShape kShape = cuda::AttentionShapeOf(kHeadSize);
    std::string error = machine_.template Launch<&cuda::Attention<kHeadSize>>(
        {1, kKvHeads}, kShape.NumThreads(), kShape.SharedBytes(), prefill);
    return error.empty() ? RunDecode(length) : error;
  }

  std::string RunDecode(int length) {
    const int num_slices = base::DivUp(length, cuda::kChunkTokens);
    auto* const slices = machine_.template Allocate<cuda::DecodeSlice>(3);
    auto* const shares = machine_.template Allocate<cuda::DecodeShare>(3);
    auto* const rows = machine_.template Allocate<cuda::DecodeRow>(1);
    for (int i = 0; i < num_slices; ++i) {
      const int first = i * cuda::kChunkTokens;
      slices[i].first = first;
      slices[i].end = std::min(first + cuda::kChunkTokens, length);
      shares[i] = {.first_slice = i, .num_slices = 1};
    }
    rows[0].num_slices = num_slices;
    cuda::DecodeArguments decode = {.query = {query_, 0}, .kv = Kv()};
    decode.shares = shares;
    decode.slices = slices;
    decode.block_table = table_;
    decode.partial_out = machine_.template Allocate<float>(3 * kHeads * kHeadSize);
    decode.partial_sums = machine_.template Allocate<float>(3 * kHeads * 2);
    decode.group = kGroup;
    decode.num_query_heads = kHeads;
    decode.scale = kScale;
    constexpr cuda::DecodeShape kShape = cuda::DecodeShapeOf(kHeadSize, cuda::kDecodeHeads);
    std::string error = machine_.template Launch<&cuda::Decode<kHeadSize, cuda::kDecodeHeads>>(
        {static_cast<unsigned>(num_slices), kKvHeads}, cuda::DecodeShape::kThreads,
        kShape.SharedBytes(), decode);
    if (!error.empty()) return error;
    cuda::MergeArguments merge = {.out = {found_, 0}, .rows = rows};
    merge.partial_out = decode.partial_out;
    merge.partial_sums = decode.partial_sums;
    merge.num_query_heads = kHeads;
    merge.head_size = kHeadSize;
    return machine_.template Launch<&cuda::MergeDecode>({1, kHeads}, cuda::kElementThreads, 0,
                                                        merge);
  }

  double Stored(int position, int kv_head, int d, bool is_value) const {
    const std::int64_t block = table_[position >> kBlockShift];
    const int token = position & ((1 << kBlockShift) - 1);
    return base::FloatFromBf16(pool_[block * 2 * kBlockElements + (is_value ? kBlockElements : 0) +
                                     (kv_head * (1 << kBlockShift) + token) * kHeadSize + d]);
  }

  // Of all heads: the length of the difference over the length of what it should be.
  double Error(int length) const {
    double difference = 0, size = 0;
    for (int h = 0; h < kHeads; ++h) {
      std::vector<double> weights;
      double total = 0;
      for (int at = 0; at < length; ++at) {
        double dot = 0;
        for (int d = 0; d < kHeadSize; ++d) {
          dot += query_[h * kHeadSize + d] * Stored(at, h / kGroup, d, false);
        }
        weights.push_back(std::exp(dot * kScale));
        total += weights.back();
      }
      for (int d = 0; d < kHeadSize; ++d) {
        double exact = 0;
        for (int at = 0; at < length; ++at) {
          exact += weights[static_cast<std::size_t>(at)] / total * Stored(at, h / kGroup, d, true);
        }
        const double error = found_[h * kHeadSize + d] - exact;
        difference += error * error;
        size += exact * exact;
      }
    }
    return std::sqrt(difference / size);
  }

  static constexpr float kScale = 0.125f;
  Machine& machine_;
  std::mt19937 random_{4};
  std::uint16_t* pool_;
  float* query_;
  std::uint32_t* table_;
  float* found_;
  float* wanted_;
};

// In the order that matters: everything else rests on the first.
template <typename Machine, typename Report>
void RunChecks(Machine& machine, const Report& report) {
  report(CheckOperandSwap(machine));
  report(CheckMoves(machine));
  report(CheckNumbers(machine));
  report(CheckGemm(machine));
  report(AttentionCheck<Machine>(machine).Run());
}

}  // namespace pagoda::gpu_check
