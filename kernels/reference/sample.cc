#include "kernels/reference/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/counter_rng.h"
#include "base/exact_math.h"

namespace pagoda::kernels::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Candidate {
  base::TokenId token = 0;
  float z = 0.0f;  // logit less the largest, over the temperature
  float weight = 0.0f;
};

// The row's largest logit with the lowest id that has it. Not finite: see SampleOutcome.
SampleOutcome Greedy(std::span<const float> logits) {
  float top = -kInfinity;
  SampleOutcome outcome;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == kInfinity) return {.token = 0, .finite = false};
    if (logits[i] > top) {
      top = logits[i];
      outcome.token = static_cast<base::TokenId>(i);
    }
  }
  outcome.finite = top > -kInfinity;
  return outcome;
}

std::vector<Candidate> AllCandidates(const SampleRow& row, float top) {
  std::vector<Candidate> made;
  for (std::size_t i = 0; i < row.logits.size(); ++i) {
    const float z = (row.logits[i] - top) / row.temperature + 0.0f;  // + 0: no negative zero
    made.push_back({static_cast<base::TokenId>(i), z, base::Exp(z)});
  }
  return made;
}

void KeepMinP(std::vector<Candidate>& kept, float min_p) {
  if (min_p == 0.0f) return;
  const float least = base::Log(min_p);
  std::erase_if(kept, [least](const Candidate& c) { return !(c.z >= least); });
}

// Leaves the k largest, in no matter what order.
void KeepTopK(std::vector<Candidate>& kept, std::int32_t top_k) {
  if (top_k <= 0 || static_cast<std::size_t>(top_k) >= kept.size()) return;
  std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) {
    return a.z != b.z ? a.z > b.z : a.token < b.token;
  });
  kept.resize(static_cast<std::size_t>(top_k));
}

void KeepTopP(std::vector<Candidate>& kept, float top_p) {
  if (top_p == 1.0f) return;
  std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  });
  std::uint64_t total = 0;
  for (const Candidate& c : kept) total += FixedPointWeight(c.weight);
  const std::uint64_t threshold = TopPThreshold(top_p, total);
  std::uint64_t before = 0;
  std::size_t count = 0;
  while (count < kept.size() && before < threshold) {
    before += FixedPointWeight(kept[count].weight);
    ++count;
  }
  kept.resize(count);
}

}  // namespace

std::uint64_t FixedPointWeight(float weight) {
  return static_cast<std::uint64_t>(weight * 0x1p40f);
}

std::uint64_t TopPThreshold(float top_p, std::uint64_t total) {
  // top_p = mantissa * 2^-shift with a mantissa below 2^24, so the product stays below 2^88.
  int exponent = 0;
  const auto mantissa = static_cast<std::uint64_t>(std::frexp(top_p, &exponent) * 0x1p24f);
  const int shift = 24 - exponent;
  const unsigned __int128 product = static_cast<unsigned __int128>(mantissa) * total;
  if (product == 0) return 0;
  if (shift >= 128) return 1;
  const unsigned __int128 rest = product & ((static_cast<unsigned __int128>(1) << shift) - 1);
  return static_cast<std::uint64_t>(product >> shift) + (rest != 0 ? 1 : 0);
}

float ExponentialVariate(const SampleRow& row, base::TokenId token) {
  const auto words = base::Philox4x32({row.position, row.choice, token >> 2, 0}, row.seed);
  const auto word = static_cast<float>(words[token & 3]);
  return base::NegLog1m(std::min(base::Fma(word, 0x1p-32f, 0x1p-33f), 1.0f - 0x1p-24f));
}

SampleOutcome Sample(const SampleRow& row) {
  const SampleOutcome greedy = Greedy(row.logits);
  if (!greedy.finite || row.temperature == 0.0f) return greedy;
  std::vector<Candidate> kept = AllCandidates(row, row.logits[greedy.token]);
  KeepMinP(kept, row.min_p);
  KeepTopK(kept, row.top_k);
  KeepTopP(kept, row.top_p);
  SampleOutcome best = greedy;
  float least = kInfinity;
  for (const Candidate& c : kept) {
    if (c.weight == 0.0f) continue;
    const float arrival = ExponentialVariate(row, c.token) / c.weight;
    if (arrival < least || (arrival == least && c.token < best.token)) {
      least = arrival;
      best.token = c.token;
    }
  }
  return best;
}

}  // namespace pagoda::kernels::reference
