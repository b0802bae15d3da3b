#pragma once

// The checks of scripts/gpu-check as host code over any machine that runs the kernels: a GPU, or
// the emulator, which must pass them too. Standard library only.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "kernels/cuda/gemm.cuh"
#include "tests/gpu/conformance_attention.cuh"
#include "tests/gpu/conformance_kernels.cuh"
#include "tests/gpu/conformance_outcome.cuh"
#include "tests/gpu/conformance_rows.cuh"
#include "tests/gpu/conformance_sample.cuh"

namespace pagoda::gpu_check {

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
  float* const wanted = machine.template Allocate<float>(kRows * kOutputs);
  Outcome outcome{"matrix products: both forms, any number of rows", false, ""};
  std::int64_t wrong = 0, total = 0;
  for (const int rows : {130, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129}) {
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
    arguments.out.data = rows == kRows ? wanted : many;
    outcome.detail = machine.template Launch<&cuda::GemmManyRows>(
        {blocks, static_cast<unsigned>(base::DivUp(rows, 64))}, cuda::GemmShape::kThreads,
        cuda::kGemmManyRows.SharedBytes(), arguments);
    if (!outcome.detail.empty()) return outcome;
    for (int i = 0; i < rows * kOutputs; ++i) {
      wrong += !SameBits(few[i], wanted[i]) || !SameBits(arguments.out.data[i], wanted[i]);
    }
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
      largest = std::max(largest, std::abs(wanted[m * kOutputs + n] - exact) / size);
    }
  }
  outcome.passed = wrong == 0 && largest <= 1e-6;
  outcome.detail = Count(wrong, total) + ", error " + std::to_string(largest * 1e9) + "e-9";
  return outcome;
}

// In the order that matters: everything else rests on the first.
template <typename Machine, typename Report>
void RunChecks(Machine& machine, const Report& report) {
  report(CheckOperandSwap(machine));
  report(CheckMoves(machine));
  report(CheckNumbers(machine));
  report(CheckGemm(machine));
  RunAttentionChecks(machine, report);
  RunRowChecks(machine, report);
  report(CheckSample(machine));
}

}  // namespace pagoda::gpu_check
