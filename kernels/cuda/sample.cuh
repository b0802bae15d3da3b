#pragma once

// One draw per row, with the very token that kernels/reference/sample.cc draws from the same
// logits. Everything that decides is an integer: counts, fixed-point sums, keys that order as the
// floats they come from; so no order of additions can change it. The kept set is found by searching
// its bounds bit by bit, a pass over the row for each bit, instead of sorting. A CTA per row.
// Thread t has the tokens t, t + 128, ...

#include <array>
#include <bit>

#include "base/counter_rng.h"
#include "base/exact_math.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/mutation.cuh"
#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {
inline namespace PAGODA_CUDA_NAMESPACE {

// Orders as the float does, but for NaN; -0 and 0 must have been made one before.
PAGODA_DEVICE std::uint32_t OrderKey(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Reductions over the CTA, the answer to all. Two halves of shared memory take turns, so that one
// barrier a call is enough.
class CtaReducer {
 public:
  PAGODA_DEVICE CtaReducer() : values_(reinterpret_cast<std::uint64_t*>(SharedMemory())) {}

  PAGODA_DEVICE std::uint64_t Sum(std::uint64_t own) {
    const std::uint64_t* const all = Share(own);
    std::uint64_t sum = 0;
    // All of them at once would not fit into the registers.
    PAGODA_UNROLL_BY_8
    for (int i = 0; i < kElementThreads; ++i) sum += all[i];
    return sum;
  }
  PAGODA_DEVICE std::uint64_t Max(std::uint64_t own) {
    const std::uint64_t* const all = Share(own);
    std::uint64_t max = 0;
    PAGODA_UNROLL_BY_8
    for (int i = 0; i < kElementThreads; ++i) max = all[i] > max ? all[i] : max;
    return max;
  }

 private:
  PAGODA_DEVICE const std::uint64_t* Share(std::uint64_t own) {
    std::uint64_t* const half = values_ + turn_ * kElementThreads;
    turn_ = 1 - turn_;
    half[ThreadIndex()] = own;
    SyncCta();
    return half;
  }

  std::uint64_t* values_;
  int turn_ = 0;
};

// Sums count(token) over the row.
template <typename Count>
PAGODA_DEVICE std::uint64_t SumTokens(CtaReducer& reducer, int num_tokens, const Count& count) {
  std::uint64_t own = 0;
  for (int i = ThreadIndex(); i < num_tokens; i += kElementThreads) own += count(i);
  return reducer.Sum(own);
}

// The id of the one that is `number`-th, from 1, of the tokens for which is_one holds. Requires:
// there are so many.
template <typename IsOne>
PAGODA_DEVICE int NthToken(CtaReducer& reducer, int num_tokens, std::uint64_t number,
                           const IsOne& is_one) {
  int bound = 0;
  for (int bit = 31 - std::countl_zero(static_cast<std::uint32_t>(num_tokens)); bit >= 0; --bit) {
    const int candidate = bound | 1 << bit;
    const std::uint64_t before = SumTokens(reducer, num_tokens, [&](int i) {
      return static_cast<std::uint64_t>(i < candidate && is_one(i) ? 1 : 0);
    });
    if (before < number) bound = candidate;
  }
  return bound;
}

PAGODA_DEVICE float Scaled(const SampleRowArguments& row, float top, int i) {
  return Divide(row.logits[i] - top, row.temperature) + 0.0f;
}

PAGODA_DEVICE std::uint64_t FixedPoint(float weight) {
  return static_cast<std::uint64_t>(weight * 0x1p40f);
}

// ceil(top_p * total), exactly.
PAGODA_DEVICE std::uint64_t PartOf(float top_p, std::uint64_t total) {
  const auto bits = std::bit_cast<std::uint32_t>(top_p);
  const std::uint32_t exponent = bits >> 23;
  const std::uint64_t mantissa = (bits & 0x7fffffu) | (exponent > 0 ? 0x800000u : 0u);
  const int shift = 150 - static_cast<int>(exponent > 0 ? exponent : 1);
  const unsigned __int128 product = static_cast<unsigned __int128>(mantissa) * total;
  if (product == 0) return 0;
  if (shift >= 128) return 1;
  const unsigned __int128 rest = product & ((static_cast<unsigned __int128>(1) << shift) - 1);
  return static_cast<std::uint64_t>(product >> shift) + (rest != 0 ? 1 : 0);
}

// Weights of what min-p and top-k keep; 0 for the rest.
PAGODA_DEVICE void WeighRow(const SampleRowArguments& row, float top, CtaReducer& reducer) {
  const float least = row.min_p > 0.0f ? base::Log(row.min_p) : 0.0f;
  const auto passes = [&](float z) { return row.min_p == 0.0f || z >= least; };
  const auto count_from = [&](std::uint32_t key) {
    return SumTokens(reducer, row.num_tokens, [&](int i) {
      const float z = Scaled(row, top, i);
      return static_cast<std::uint64_t>(passes(z) && OrderKey(z) >= key ? 1 : 0);
    });
  };
  std::uint32_t bound = 0;
  int last_tie = row.num_tokens;
  const auto wanted = static_cast<std::uint64_t>(row.top_k > 0 ? row.top_k : 0);
  if (wanted > 0 && count_from(0) > wanted) {
    for (int bit = 31; bit >= 0; --bit) {
      const std::uint32_t candidate = bound | 1u << bit;
      if (count_from(candidate) >= wanted) bound = candidate;
    }
    // The key of 0, the greatest there is, leaves room for one above it.
    const std::uint64_t above = count_from(bound + 1);
    if (count_from(bound) > wanted) {
      const std::uint64_t more = Mutated(Mutation::kSampleTopKKeepsOneMore) ? 1 : 0;
      last_tie = NthToken(reducer, row.num_tokens, wanted - above + more, [&](int i) {
        const float z = Scaled(row, top, i);
        return passes(z) && OrderKey(z) == bound;
      });
    }
  }
  for (int i = ThreadIndex(); i < row.num_tokens; i += kElementThreads) {
    const float z = Scaled(row, top, i);
    const std::uint32_t key = OrderKey(z);
    const bool kept = passes(z) && (key > bound || (key == bound && i <= last_tie));
    row.weights[i] = kept ? base::Exp(z) : 0.0f;
  }
}

// Takes the weight from those that top-p does not keep.
PAGODA_DEVICE void KeepTopP(const SampleRowArguments& row, CtaReducer& reducer) {
  const auto sum_above = [&](std::uint32_t bound) {
    return SumTokens(reducer, row.num_tokens, [&](int i) {
      const float weight = row.weights[i];
      return std::bit_cast<std::uint32_t>(weight) > bound ? FixedPoint(weight) : 0;
    });
  };
  const std::uint64_t threshold = PartOf(row.top_p, sum_above(0));
  // The least weight with less than the threshold above it: what is above it stays, what is below
  // goes, and of those that have it as many as it takes, lowest ids first.
  std::uint32_t bound = 0;
  for (int bit = 31; bit >= 0; --bit) {
    if (sum_above(bound | ((1u << bit) - 1)) >= threshold) bound |= 1u << bit;
  }
  const std::uint64_t above = sum_above(bound);
  const std::uint64_t each = FixedPoint(std::bit_cast<float>(bound));
  const auto has_it = [&](int i) { return std::bit_cast<std::uint32_t>(row.weights[i]) == bound; };
  const std::uint64_t ties = SumTokens(reducer, row.num_tokens, [&](int i) {
    return static_cast<std::uint64_t>(has_it(i) ? 1 : 0);
  });
  int last_tie = -1;
  if (each > 0 && threshold > above) {
    const std::uint64_t more = Mutated(Mutation::kSampleTopPKeepsOneMore) ? 1 : 0;
    const std::uint64_t fitting = (threshold - above + each - 1) / each + more;
    last_tie =
        fitting >= ties ? row.num_tokens : NthToken(reducer, row.num_tokens, fitting, has_it);
  }
  for (int i = ThreadIndex(); i < row.num_tokens; i += kElementThreads) {
    const auto bits = std::bit_cast<std::uint32_t>(row.weights[i]);
    if (bits < bound || (bits == bound && i > last_tie)) row.weights[i] = 0.0f;
  }
}

// Of the kept tokens the one whose exponential variate over its weight comes first.
PAGODA_DEVICE std::uint32_t Draw(const SampleRowArguments& row, std::uint32_t greedy,
                                 CtaReducer& reducer) {
  // Kept turned over, since the reducer knows maxima: the least arrival, then the lowest id.
  std::uint64_t best = 0;
  for (int i = ThreadIndex(); i < row.num_tokens; i += kElementThreads) {
    const float weight = row.weights[i];
    if (weight == 0.0f) continue;
    const auto token = static_cast<std::uint32_t>(i);
    const auto words = base::Philox4x32({row.position, row.choice, token >> 2, 0}, row.seed);
    const std::uint32_t pair[2] = {(token & 1) != 0 ? words[1] : words[0],
                                   (token & 1) != 0 ? words[3] : words[2]};
    const std::uint32_t half = Mutated(Mutation::kSampleTakesAnothersWord) ? 0 : token >> 1 & 1;
    const auto word = static_cast<float>(pair[half]);
    const float uniform = base::Fma(word, 0x1p-32f, 0x1p-33f);
    const float most = 1.0f - 0x1p-24f;
    const float arrival = Divide(base::NegLog1m(uniform < most ? uniform : most), weight);
    const std::uint64_t key =
        ~(static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(arrival)) << 32 | token);
    best = key > best ? key : best;
  }
  const std::uint64_t first = ~reducer.Max(best);
  // Nothing arrived in a finite time: as the reference, the likeliest.
  const auto arrival = static_cast<std::uint32_t>(first >> 32);
  return arrival >= 0x7f800000u ? greedy : static_cast<std::uint32_t>(first);
}

PAGODA_KERNEL(kElementThreads, 4) Sample(PAGODA_ARGUMENT SampleArguments arguments) {
  const SampleRowArguments row = arguments.rows[CtaX()];
  CtaReducer reducer;
  std::uint64_t own_top = 0;
  std::uint64_t own_faults = 0;
  for (int i = ThreadIndex(); i < row.num_tokens; i += kElementThreads) {
    const float x = row.logits[i] + 0.0f;
    own_faults += x != x || x == std::numeric_limits<float>::infinity() ? 1 : 0;
    const std::uint64_t key = static_cast<std::uint64_t>(OrderKey(x)) << 32 |
                              (0xffffffffu - static_cast<std::uint32_t>(i));
    own_top = key > own_top ? key : own_top;
  }
  const bool faulty = reducer.Sum(own_faults) > 0;
  const auto greedy = 0xffffffffu - static_cast<std::uint32_t>(reducer.Max(own_top));
  SampleResult result = {0, 0};
  const float top = faulty ? 0.0f : row.logits[greedy];
  if (!faulty && top > -std::numeric_limits<float>::infinity()) {
    result = {greedy, 1};
    if (row.temperature > 0.0f) {
      WeighRow(row, top, reducer);
      if (row.top_p < 1.0f) KeepTopP(row, reducer);
      result.token = Draw(row, greedy, reducer);
    }
  }
  if (ThreadIndex() == 0) arguments.results[CtaX()] = result;
}

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
