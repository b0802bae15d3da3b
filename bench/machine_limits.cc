#include "bench/machine_limits.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/worker_pool.h"

namespace pagoda::bench {
namespace {

using kernels::cpu::InstructionClass;

constexpr int kRepetitions = 8;
constexpr std::int64_t kSteps = 1'000'000;
constexpr std::size_t kReadWords = (std::size_t{256} << 20) / sizeof(std::uint64_t);
// Chains that depend on nothing but themselves, enough of them to hide the latency of an
// instruction.
constexpr int kChains = 12;

// Each returns the number of operations done, and folds its result in, so that nothing is left out.
__attribute__((target("avx2,fma"))) std::int64_t FmaAvx2(float seed, float* result) {
  __m256 sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm256_set1_ps(seed * static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(seed);
  for (std::int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm256_fmadd_ps(sum[i], factor, factor);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  *result += _mm256_cvtss_f32(sum[0]);
  return kSteps * kChains * 8;
}

__attribute__((target("avx512f"))) std::int64_t FmaAvx512(float seed, float* result) {
  __m512 sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_set1_ps(seed * static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(seed);
  for (std::int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_fmadd_ps(sum[i], factor, factor);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  *result += _mm512_cvtss_f32(sum[0]);
  return kSteps * kChains * 16;
}

__attribute__((target("avx2"))) std::int64_t BytesAvx2(float seed, float* result) {
  __m256i sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm256_set1_epi8(static_cast<char>(i));
  const __m256i factor = _mm256_set1_epi8(static_cast<char>(seed));
  for (std::int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm256_maddubs_epi16(sum[i], factor);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_epi16(sum[0], sum[i]);
  *result += static_cast<float>(_mm256_extract_epi32(sum[0], 0));
  return kSteps * kChains * 32;
}

__attribute__((target("avx512f,avx512vnni"))) std::int64_t BytesVnni(float seed, float* result) {
  __m512i sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_set1_epi32(i);
  const __m512i factor = _mm512_set1_epi8(static_cast<char>(seed));
  for (std::int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_dpbusd_epi32(sum[i], factor, factor);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_epi32(sum[0], sum[i]);
  *result += static_cast<float>(_mm512_reduce_add_epi32(sum[0]));
  return kSteps * kChains * 64;
}

std::int64_t SumWords(const std::vector<std::uint64_t>& words, std::int64_t task,
                      std::int64_t tasks, float* result) {
  const std::size_t share = words.size() / static_cast<std::size_t>(tasks);
  const std::uint64_t* p = words.data() + static_cast<std::size_t>(task) * share;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < share; ++i) sum += p[i];
  *result += static_cast<float>(sum & 1);
  return static_cast<std::int64_t>(share * sizeof(std::uint64_t));
}

// The best rate of some repetitions; work(task, result) is called for tasks 0 ... num_tasks - 1 at
// once.
template <typename Work>
double BestRate(kernels::cpu::WorkerPool& pool, std::int64_t num_tasks, const Work& work) {
  double best = 0;
  std::vector<float> results(static_cast<std::size_t>(num_tasks));
  for (int i = 0; i < kRepetitions; ++i) {
    std::atomic<std::int64_t> done = 0;
    const auto start = std::chrono::steady_clock::now();
    pool.Run(num_tasks, [&](std::int64_t task, int) {
      done += work(task, &results[static_cast<std::size_t>(task)]);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(done.load()) / seconds.count());
  }
  return best;
}

}  // namespace

MachineLimits MeasureLimits(int num_threads) {
  kernels::cpu::WorkerPool pool({.num_threads = num_threads});
  const InstructionClass best = kernels::cpu::AvailableInstructionClasses().back();
  MachineLimits limits;
  if (best == InstructionClass::kPortable) return limits;
  const bool wide = best != InstructionClass::kAvx2;
  const bool vnni = best == InstructionClass::kAvx512Vnni;
  limits.fma_per_second = BestRate(pool, num_threads, [&](std::int64_t, float* result) {
    return wide ? FmaAvx512(0.999f, result) : FmaAvx2(0.999f, result);
  });
  limits.int8_products_per_second = BestRate(pool, num_threads, [&](std::int64_t, float* result) {
    return vnni ? BytesVnni(3.0f, result) : BytesAvx2(3.0f, result);
  });
  const std::vector<std::uint64_t> words(kReadWords, 1);
  const std::int64_t pieces = std::int64_t{num_threads} * 8;
  limits.read_bytes_per_second = BestRate(pool, pieces, [&](std::int64_t task, float* result) {
    return SumWords(words, task, pieces, result);
  });
  return limits;
}

}  // namespace pagoda::bench
