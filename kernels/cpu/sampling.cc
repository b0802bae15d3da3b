#include "kernels/cpu/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/counter_rng.h"
#include "base/exact_math.h"

namespace pagoda::kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Weights lie in [0, 1]: the upper bits of their pattern order them into this many buckets.
constexpr int kBucketShift = 19;
constexpr std::size_t kNumBuckets = (0x3f800000u >> kBucketShift) + 1;

std::uint64_t FixedPoint(float weight) {
  return static_cast<std::uint64_t>(static_cast<double>(weight) * 0x1p40);
}

std::size_t Bucket(float weight) { return std::bit_cast<std::uint32_t>(weight) >> kBucketShift; }

// ceil(factor * total), exactly. Requires: 0 < factor <= 1.
std::uint64_t CeilProduct(float factor, std::uint64_t total) {
  int exponent = 0;
  const float fraction = std::frexp(factor, &exponent);  // factor = fraction * 2^exponent
  const auto mantissa = static_cast<std::uint64_t>(fraction * 0x1p24f);
  const int shift = 24 - exponent;
  const unsigned __int128 product = static_cast<unsigned __int128>(mantissa) * total;
  if (shift >= 128) return product > 0 ? 1 : 0;
  const unsigned __int128 below = (static_cast<unsigned __int128>(1) << shift) - 1;
  return static_cast<std::uint64_t>((product + below) >> shift);
}

// The largest logit, or NaN when the row has no token to offer.
float TopLogit(std::span<const float> logits) {
  float top = -kInfinity;
  bool bad = false;
  for (const float x : logits) {
    bad |= !(x < kInfinity);
    top = x > top ? x : top;
  }
  return bad || top == -kInfinity ? std::numeric_limits<float>::quiet_NaN() : top;
}

}  // namespace

SampleOutcome RowSampler::Sample(const SampleRow& row, const KernelTable& kernels) {
  const float top = TopLogit(row.logits);
  if (top != top) return {.token = 0, .finite = false};
  if (row.temperature == 0.0f) {
    const auto first = std::find(row.logits.begin(), row.logits.end(), top);
    return {.token = static_cast<base::TokenId>(first - row.logits.begin()), .finite = true};
  }
  const std::size_t size = row.logits.size();
  scores_.resize(size);
  weights_.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    scores_[i] = (row.logits[i] - top) / row.temperature + 0.0f;
  }
  kernels.exp(scores_.data(), static_cast<std::int64_t>(size), weights_.data());

  const float lowest = row.min_p > 0.0f ? base::Log(row.min_p) : -kInfinity;
  kept_.clear();
  for (std::size_t i = 0; i < size; ++i) {
    if (scores_[i] >= lowest) kept_.push_back(static_cast<base::TokenId>(i));
  }
  if (row.top_k > 0) KeepTopK(row.top_k);
  if (row.top_p < 1.0f) KeepTopP(row.top_p);
  return {.token = Draw(row), .finite = true};
}

void RowSampler::KeepTopK(std::int64_t k) {
  if (k >= static_cast<std::int64_t>(kept_.size())) return;
  const auto before = [this](base::TokenId a, base::TokenId b) {
    return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a < b;
  };
  std::nth_element(kept_.begin(), kept_.begin() + k, kept_.end(), before);
  kept_.resize(static_cast<std::size_t>(k));
}

// Sums are integers, so they may be taken bucket by bucket; only the bucket in which the limit is
// crossed is put in order.
void RowSampler::KeepTopP(float top_p) {
  bucket_sums_.assign(kNumBuckets, 0);
  std::uint64_t total = 0;
  for (const base::TokenId token : kept_) {
    const std::uint64_t weight = FixedPoint(weights_[token]);
    bucket_sums_[Bucket(weights_[token])] += weight;
    total += weight;
  }
  const std::uint64_t limit = CeilProduct(top_p, total);
  std::size_t crossed = kNumBuckets - 1;
  std::uint64_t sum = 0;
  while (crossed > 0 && sum + bucket_sums_[crossed] < limit) sum += bucket_sums_[crossed--];

  crossing_.clear();
  std::size_t num_kept = 0;
  for (const base::TokenId token : kept_) {
    const std::size_t bucket = Bucket(weights_[token]);
    if (bucket == crossed) crossing_.push_back(token);
    if (bucket > crossed && FixedPoint(weights_[token]) > 0) kept_[num_kept++] = token;
  }
  kept_.resize(num_kept);
  std::sort(crossing_.begin(), crossing_.end(), [this](base::TokenId a, base::TokenId b) {
    return weights_[a] != weights_[b] ? weights_[a] > weights_[b] : a < b;
  });
  for (const base::TokenId token : crossing_) {
    const std::uint64_t weight = FixedPoint(weights_[token]);
    if (sum >= limit || weight == 0) break;
    kept_.push_back(token);
    sum += weight;
  }
}

// -log(1 - v) >= v, so a token whose v alone is too large for its weight needs no logarithm; most
// do not.
base::TokenId RowSampler::Draw(const SampleRow& row) const {
  constexpr float kLargest = 1.0f - 0x1p-24f;
  constexpr float kMargin = 0.9999f;  // of the rounding of both sides
  float best = kInfinity;
  base::TokenId chosen = kept_.front();
  std::uint32_t group = ~std::uint32_t{0};
  std::array<std::uint32_t, 4> words = {};
  for (const base::TokenId token : kept_) {
    const float weight = weights_[token];
    if (weight == 0.0f) continue;
    if (token >> 2 != group) {
      group = token >> 2;
      words = base::Philox4x32({row.position, row.choice, group, 0}, row.seed);
    }
    // fma(float(r), 2^-32, 2^-33): the product is exact.
    const float v = std::min(static_cast<float>(words[token & 3]) * 0x1p-32f + 0x1p-33f, kLargest);
    if (v * kMargin > best * weight) continue;
    const float ratio = base::NegLog1m(v) / weight;
    if (ratio < best || (ratio == best && token < chosen)) {
      best = ratio;
      chosen = token;
    }
  }
  return chosen;
}

}  // namespace pagoda::kernels::cpu
