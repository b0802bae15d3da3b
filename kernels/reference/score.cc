#include "kernels/reference/score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/exact_math.h"
#include "kernels/reference/sample.h"

namespace pagoda::kernels::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The token ids of a row, likeliest first.
std::vector<base::TokenId> InOrder(std::span<const float> logits) {
  std::vector<base::TokenId> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<base::TokenId>(i);
  std::ranges::sort(ids, [logits](base::TokenId a, base::TokenId b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  return ids;
}

}  // namespace

ScoreOutcome Score(const ScoreRow& row) {
  float top = -kInfinity;
  for (const float x : row.logits) {
    if (std::isnan(x) || x == kInfinity) return {.finite = false};
    top = std::max(top, x);
  }
  if (top == -kInfinity) return {.finite = false};
  std::uint64_t total = 0;
  for (const float x : row.logits) total += FixedPointWeight(base::Exp(x - top));
  const float log_total = base::Log(static_cast<float>(total) * 0x1p-40f);
  const auto logprob = [&](base::TokenId token) { return (row.logits[token] - top) - log_total; };

  const std::vector<base::TokenId> order = InOrder(row.logits);
  for (std::size_t i = 0; i < row.alternatives.size(); ++i) {
    const base::TokenId token = row.token_ids.empty() ? order[i] : row.token_ids[i];
    row.alternatives[i] = {.token = token, .logprob = logprob(token)};
  }
  const auto place = std::ranges::find(order, row.token) - order.begin();
  return {.logprob = logprob(row.token), .rank = static_cast<std::uint32_t>(place) + 1};
}

}  // namespace pagoda::kernels::reference
