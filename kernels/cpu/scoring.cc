#include "kernels/cpu/scoring.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/exact_math.h"

namespace pagoda::kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Of equal logits the lower id comes first; ids are visited in ascending order, so a later equal
// one never goes before.
void KeepLikeliest(std::span<const float> logits, std::span<base::TokenLogprob> kept) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i];
    if (count == kept.size() && !(x > kept.back().logprob)) continue;
    if (count < kept.size()) ++count;
    std::size_t place = count - 1;
    for (; place > 0 && x > kept[place - 1].logprob; --place) kept[place] = kept[place - 1];
    kept[place] = {.token = static_cast<base::TokenId>(i), .logprob = x};
  }
}

std::uint32_t RankOf(std::span<const float> logits, base::TokenId token) {
  const float own = logits[token];
  std::uint32_t before = 0;
  for (const float x : logits) before += x > own ? 1 : 0;
  for (const float x : logits.first(token)) before += x == own ? 1 : 0;
  return before + 1;
}

}  // namespace

ScoreOutcome RowScorer::Score(const ScoreRow& row, const KernelTable& kernels) {
  float top = -kInfinity;
  bool bad = false;
  for (const float x : row.logits) {
    bad |= !(x < kInfinity);
    top = x > top ? x : top;
  }
  if (bad || top == -kInfinity) return {.finite = false};
  const float log_total = LogTotal(row.logits, top, kernels);
  if (row.token_ids.empty()) {
    // The logits stand in for the log-probabilities until the order is found.
    if (!row.alternatives.empty()) KeepLikeliest(row.logits, row.alternatives);
  } else {
    for (std::size_t i = 0; i < row.alternatives.size(); ++i) {
      row.alternatives[i] = {row.token_ids[i], row.logits[row.token_ids[i]]};
    }
  }
  for (base::TokenLogprob& each : row.alternatives) each.logprob = (each.logprob - top) - log_total;
  return {.logprob = (row.logits[row.token] - top) - log_total,
          .rank = RankOf(row.logits, row.token)};
}

// Integers, so the sum is the same in any order.
float RowScorer::LogTotal(std::span<const float> logits, float top, const KernelTable& kernels) {
  differences_.resize(logits.size());
  weights_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) differences_[i] = logits[i] - top;
  kernels.exp(differences_.data(), static_cast<std::int64_t>(logits.size()), weights_.data());
  std::uint64_t total = 0;
  for (const float weight : weights_) {
    total += static_cast<std::uint64_t>(static_cast<double>(weight) * 0x1p40);
  }
  return base::Log(static_cast<float>(total) * 0x1p-40f);
}

}  // namespace pagoda::kernels::cpu
