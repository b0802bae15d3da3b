#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::client {

// Tokens: one number, or each of `least` ... `most` equally likely.
struct LengthRange {
  std::int32_t least = 1;
  std::int32_t most = 1;
};

// "512" or "100..500", at least 1. Nothing for anything else.
std::optional<LengthRange> ParseLengths(std::string_view text);

// What `bench` was asked. Closed loop: `concurrency` callers that each wait for their reply. Open
// loop (with `rate`): requests leave at times of their own, whatever the server does.
struct LoadOptions {
  std::int32_t concurrency = 1;
  std::optional<double> rate;        // requests per second
  std::int32_t max_in_flight = 256;  // open loop: what comes beyond it is sent late, and so counted

  std::optional<std::int64_t> num_requests;
  std::optional<double> duration_seconds;  // no request begins after it

  LengthRange input{128, 128};
  LengthRange output{64, 64};
  std::int32_t shared_prefix = 0;  // tokens in front of every prompt, beside `input`
  std::uint64_t seed = 0;
  double allowed_failures_percent = 0;

  std::int32_t num_callers() const { return rate.has_value() ? max_in_flight : concurrency; }
};

}  // namespace pagoda::client
