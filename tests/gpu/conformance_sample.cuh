#pragma once

// Draws beside their definition, token by token: no sort, no threshold, integers of 128 bits for
// top-p, double for the race. Standard library only.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/counter_rng.h"
#include "base/exact_math.h"
#include "kernels/cuda/sample.cuh"
#include "tests/gpu/conformance_outcome.cuh"

namespace pagoda::gpu_check {

// What the filters leave of a row, and the token that is drawn. Requires: temperature > 0.
class DrawByDefinition {
 public:
  explicit DrawByDefinition(const cuda::SampleRowArguments& row)
      : row_(row), size_(static_cast<std::size_t>(row.num_tokens)) {
    const float top = *std::max_element(row.logits, row.logits + row.num_tokens);
    for (std::size_t i = 0; i < size_; ++i) {
      scaled_.push_back((row.logits[i] - top) / row.temperature);
      weights_.push_back(base::Exp(scaled_.back()));
    }
    kept_.assign(size_, true);
    if (row.min_p > 0) {
      for (std::size_t i = 0; i < size_; ++i) kept_[i] = scaled_[i] >= base::Log(row.min_p);
    }
    if (row.top_k > 0) KeepTopK();
    if (row.top_p < 1) KeepTopP();
  }

  // 0: not kept.
  float WeightOf(std::size_t i) const { return kept_[i] ? weights_[i] : 0.0f; }

  std::uint32_t Token() const {
    std::uint32_t best = 0;
    float least = std::numeric_limits<float>::infinity();
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (!kept_[i]) continue;
      const auto arrival = static_cast<float>(Variate(i) / double{weights_[i]});
      if (arrival < least) {
        least = arrival;
        best = i;
      }
    }
    return best;
  }

 private:
  void KeepTopK() {
    const std::vector<bool> from = kept_;
    for (std::size_t i = 0; i < size_; ++i) {
      std::int64_t before = 0;
      for (std::size_t j = 0; j < size_; ++j) {
        before += from[j] && (scaled_[j] > scaled_[i] || (scaled_[j] == scaled_[i] && j < i));
      }
      kept_[i] = from[i] && before < row_.top_k;
    }
  }
  void KeepTopP() {
    const std::vector<bool> from = kept_;
    const auto fixed = [this](std::size_t i) {
      return static_cast<__int128>(std::ldexp(double{weights_[i]}, 40));
    };
    constexpr int kShift = 60;
    const auto top_p = static_cast<__int128>(std::ldexp(double{row_.top_p}, kShift));
    __int128 total = 0;
    for (std::size_t j = 0; j < size_; ++j) total += from[j] ? fixed(j) : 0;
    for (std::size_t i = 0; i < size_; ++i) {
      __int128 before = 0;
      for (std::size_t j = 0; j < size_; ++j) {
        const bool earlier = weights_[j] > weights_[i] || (weights_[j] == weights_[i] && j < i);
        before += from[j] && earlier ? fixed(j) : 0;
      }
      kept_[i] = from[i] && (before << kShift) < top_p * total;
    }
  }
  double Variate(std::uint32_t i) const {
    const auto words = base::Philox4x32({row_.position, row_.choice, i / 4, 0}, row_.seed);
    const double exact = double{static_cast<float>(words[i % 4])} * 0x1p-32 + 0x1p-33;
    return base::NegLog1m(std::min(static_cast<float>(exact), 1.0f - 0x1p-24f));
  }

  const cuda::SampleRowArguments& row_;
  const std::size_t size_;
  std::vector<float> scaled_, weights_;
  std::vector<bool> kept_;
};

// Rows spread, full of ties, flat, with one token, masked; filters that fall on a token exactly.
inline void FillLogits(float* logits, int size, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0f, 4.0f);
  const auto kind = random() % 5;
  for (int i = 0; i < size; ++i) {
    logits[i] = 0.25f;
    if (kind == 0) logits[i] = normal(random);
    if (kind == 1) logits[i] = static_cast<float>(random() % 4);
    if (kind == 3) logits[i] = -50.0f;
    if (kind == 4 && random() % 3 != 0) logits[i] = -std::numeric_limits<float>::infinity();
  }
  if (kind >= 3) logits[random() % static_cast<unsigned>(size)] = 3.0f;
}

inline void ChooseParameters(cuda::SampleRowArguments& row, std::mt19937& random) {
  constexpr float kTemperatures[] = {1.0f, 0.3f, 2.0f, 100.0f};
  constexpr float kTopP[] = {1.0f, 0.9f, 0.5f, 0.25f, 1e-9f};
  constexpr std::int32_t kTopK[] = {0, -1, 1, 3, 20, 9'999'999};
  constexpr float kMinP[] = {0.0f, 0.05f, 0.5f, 1.0f};
  row.temperature = kTemperatures[random() % 4];
  row.top_p = kTopP[random() % 5];
  row.top_k = kTopK[random() % 6];
  row.min_p = kMinP[random() % 4];
  row.seed = std::uint64_t{random()} << 32 | random();
  row.position = static_cast<std::uint32_t>(random());
  row.choice = static_cast<std::uint32_t>(random()) % 3;
}

template <typename Machine>
Outcome CheckSample(Machine& machine) {
  constexpr int kRows = 500, kMostTokens = 300;
  std::mt19937 random(9);
  auto* const rows = machine.template Allocate<cuda::SampleRowArguments>(kRows);
  auto* const results = machine.template Allocate<cuda::SampleResult>(kRows);
  float* const logits = machine.template Allocate<float>(kRows * kMostTokens);
  float* const weights = machine.template Allocate<float>(kRows * kMostTokens);
  for (int r = 0; r < kRows; ++r) {
    ChooseParameters(rows[r], random);
    rows[r].logits = logits + r * kMostTokens;
    rows[r].weights = weights + r * kMostTokens;
    rows[r].num_tokens = static_cast<std::int32_t>(1 + random() % (r % 10 == 0 ? kMostTokens : 70));
    FillLogits(logits + r * kMostTokens, rows[r].num_tokens, random);
  }
  Outcome outcome{"Sample: kept sets, weights and tokens of the definition", false, ""};
  outcome.detail = machine.template Launch<&cuda::Sample>({kRows}, cuda::kElementThreads,
                                                          cuda::kSampleSharedBytes,
                                                          cuda::SampleArguments{rows, results});
  if (!outcome.detail.empty()) return outcome;
  std::int64_t wrong = 0;
  for (int r = 0; r < kRows; ++r) {
    const DrawByDefinition definition(rows[r]);
    bool same = results[r].finite == 1 && results[r].token == definition.Token();
    for (std::int32_t i = 0; i < rows[r].num_tokens; ++i) {
      same = same && SameBits(rows[r].weights[i], definition.WeightOf(static_cast<std::size_t>(i)));
    }
    wrong += same ? 0 : 1;
  }
  outcome.passed = wrong == 0;
  outcome.detail = Count(wrong, kRows) + " rows";
  return outcome;
}

}  // namespace pagoda::gpu_check
