#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/counter_rng.h"
#include "base/exact_math.h"
#include "kernels/ops.h"

namespace pagoda::kernels {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The definition of README part 3, token by token: no sort, no threshold, integers of 128 bits for
// top-p, double for the race.
class SamplingDefinition {
 public:
  explicit SamplingDefinition(const SampleRow& row) : row_(row) {
    const float top = *std::max_element(row.logits.begin(), row.logits.end());
    for (const float x : row.logits) {
      z_.push_back((x - top) / row.temperature);
      weights_.push_back(base::Exp(z_.back()));
    }
  }

  // Which tokens the filters leave. One of weight 0 may be among them; it is never drawn.
  std::vector<bool> Kept() const {
    std::vector<bool> kept(z_.size(), true);
    if (row_.min_p > 0) Keep(kept, [this](std::size_t i, const auto&) { return PassesMinP(i); });
    if (row_.top_k > 0) {
      Keep(kept, [this](std::size_t i, const auto& from) { return RankOf(i, from) < row_.top_k; });
    }
    if (row_.top_p < 1) {
      Keep(kept, [this](std::size_t i, const auto& from) { return PassesTopP(i, from); });
    }
    return kept;
  }

  SampleOutcome Choose() const {
    const std::vector<bool> kept = Kept();
    SampleOutcome best;
    float least = kInfinity;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) continue;
      const auto arrival = static_cast<float>(Variate(i) / double{weights_[i]});
      if (arrival < least) {
        least = arrival;
        best.token = static_cast<base::TokenId>(i);
      }
    }
    return best;
  }

  std::span<const float> weights() const { return weights_; }

 private:
  template <typename Predicate>
  void Keep(std::vector<bool>& kept, Predicate predicate) const {
    const std::vector<bool> before = kept;
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = before[i] && predicate(i, before);
  }
  bool PassesMinP(std::size_t i) const { return z_[i] >= base::Log(row_.min_p); }
  std::int64_t RankOf(std::size_t i, const std::vector<bool>& from) const {
    std::int64_t rank = 0;
    for (std::size_t j = 0; j < z_.size(); ++j) {
      rank += from[j] && (z_[j] > z_[i] || (z_[j] == z_[i] && j < i)) ? 1 : 0;
    }
    return rank;
  }
  __int128 Fixed(std::size_t i) const {
    return static_cast<__int128>(std::ldexp(double{weights_[i]}, 40));
  }
  // The sum before the token is below top_p * total: an integer is below a number iff it is below
  // its ceiling.
  bool PassesTopP(std::size_t i, const std::vector<bool>& from) const {
    __int128 before = 0;
    __int128 total = 0;
    for (std::size_t j = 0; j < z_.size(); ++j) {
      if (!from[j]) continue;
      total += Fixed(j);
      if (weights_[j] > weights_[i] || (weights_[j] == weights_[i] && j < i)) before += Fixed(j);
    }
    constexpr int kShift = 60;  // top_p >= 2^-36 in these tests
    const auto scaled = static_cast<__int128>(std::ldexp(double{row_.top_p}, kShift));
    return (before << kShift) < scaled * total;
  }
  double Variate(std::size_t i) const {
    const auto id = static_cast<std::uint32_t>(i);
    const auto words = base::Philox4x32({row_.position, row_.choice, id / 4, 0}, row_.seed);
    const double exact = double{static_cast<float>(words[id % 4])} * 0x1p-32 + 0x1p-33;
    const float v = std::min(static_cast<float>(exact), 1.0f - 0x1p-24f);
    return base::NegLog1m(v);
  }

  const SampleRow& row_;
  std::vector<float> z_, weights_;
};

inline SampleRow RandomParameters(std::span<const float> logits, std::mt19937& random) {
  constexpr float kTemperatures[] = {1.0f, 0.3f, 2.0f, 1e-3f, 100.0f};
  constexpr float kTopP[] = {1.0f, 0.9f, 0.5f, 0.25f, 1e-9f};
  constexpr std::int32_t kTopK[] = {0, -1, 1, 3, 20, 9'999'999};
  constexpr float kMinP[] = {0.0f, 0.05f, 0.5f, 1.0f};
  SampleRow row;
  row.logits = logits;
  row.temperature = kTemperatures[random() % 5];
  row.top_p = kTopP[random() % 5];
  row.top_k = kTopK[random() % 6];
  row.min_p = kMinP[random() % 4];
  row.seed = (std::uint64_t{random()} << 32) | random();
  row.position = static_cast<std::uint32_t>(random());
  row.choice = static_cast<std::uint32_t>(random()) % 3;
  return row;
}

// Rows of every kind: spread, full of ties, flat, one-hot, masked.
inline std::vector<float> HardLogits(std::size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0f, 4.0f);
  const auto kind = random() % 5;
  std::vector<float> logits(size, kind == 3 ? -50.0f : 0.25f);
  for (float& x : logits) {
    if (kind == 0) x = normal(random);
    if (kind == 1) x = static_cast<float>(random() % 4);
    if (kind == 4) x = random() % 3 == 0 ? normal(random) : -kInfinity;
  }
  if (kind >= 3) logits[random() % size] = 3.0f;
  return logits;
}

}  // namespace pagoda::kernels
