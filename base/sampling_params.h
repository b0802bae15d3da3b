#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"

namespace pagoda::base {

// Added to one token's logit before the penalties.
struct LogitBias {
  TokenId token = 0;
  float bias = 0.0f;
};

// What one request may bring. These size fixed arrays, so they are constants.
inline constexpr std::int32_t kMaxStopTokenIds = 64;
inline constexpr std::int32_t kMaxLogitBiases = 1024;
inline constexpr std::int32_t kMaxBadWords = 256;
inline constexpr std::int32_t kMaxBadWordBytes = 256;     // of one
inline constexpr std::int32_t kMaxBadWordEntries = 2048;  // tokens of all of them, and one for each

// How the next token is chosen: validated, complete, plain data. Absent values were resolved before
// (NewRequest::Create); the meaning and range of each field is vLLM's, see docs/api.md.
struct SamplingParams {
  float temperature = 1.0f;         // 0: greedy, which ignores top_p, top_k and min_p
  float top_p = 1.0f;               // (0, 1]
  std::int32_t top_k = 0;           // 0: off
  float min_p = 0.0f;               // [0, 1]
  float presence_penalty = 0.0f;    // over generated tokens
  float frequency_penalty = 0.0f;   // over generated tokens
  float repetition_penalty = 1.0f;  // over prompt and generated tokens; > 0
  std::uint64_t seed = 0;
  std::int32_t min_tokens = 0;  // below it the stop ids and EOS are masked
  bool ignore_eos = false;
  // Log-probabilities of so many of the likeliest tokens, beside that of the token itself.
  std::optional<std::int32_t> logprobs = std::nullopt;         // of each generated token
  std::optional<std::int32_t> prompt_logprobs = std::nullopt;  // of each prompt token but the first

  bool is_greedy() const { return temperature == 0.0f; }
  bool has_penalties() const {
    return presence_penalty != 0.0f || frequency_penalty != 0.0f || repetition_penalty != 1.0f;
  }
};

}  // namespace pagoda::base
