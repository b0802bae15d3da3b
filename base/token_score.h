#pragma once

#include <cstdint>

#include "base/ids.h"

namespace pagoda::base {

// A token and its log-probability: natural logarithm, of the model's own logits, before masks,
// bias, penalties and temperature.
struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;
};

// What a row of logits says about one token. The alternatives that were asked for are a run in an
// array of TokenLogprob that travels beside this one.
struct TokenScore {
  TokenLogprob of = {};
  std::uint32_t rank = 0;  // 1: the likeliest; of equal ones the lower id comes first
  std::uint32_t first_alternative = 0;
  std::uint32_t num_alternatives = 0;
};

// The limits of what one request may ask for. They size fixed arrays, so they are constants.
inline constexpr std::int32_t kMaxLogprobs = 20;          // alternatives per token
inline constexpr std::int32_t kMaxLogprobTokenIds = 128;  // tokens named instead
inline constexpr std::int32_t kMaxAlternatives = kMaxLogprobTokenIds;

}  // namespace pagoda::base
