#pragma once

#include <cstdint>
#include <vector>

#include "client/load/load_options.h"

namespace pagoda::client {

struct PlannedRequest {
  std::int64_t index = 0;
  std::vector<std::uint32_t> prompt;
  std::int32_t output_tokens = 0;
  std::uint64_t seed = 0;  // of its sampling
};

// What each request of a run is: a pure function of the options and its index, so that two runs
// with one seed ask the same, whatever answers. Threads: any.
class LoadPlan {
 public:
  // Prompts are token ids below `vocabulary_size`. Requires: vocabulary_size >= 1.
  LoadPlan(const LoadOptions& options, std::uint32_t vocabulary_size);

  PlannedRequest Request(std::int64_t index) const;

 private:
  const LoadOptions options_;
  const std::uint32_t vocabulary_size_;
};

// Poisson arrivals: gaps are exponential with mean 1 / rate, drawn from the seed. Times are offsets
// from the start, in nanoseconds, never falling.
class ArrivalTimes {
 public:
  ArrivalTimes(double rate_per_second, std::uint64_t seed)
      : rate_per_second_(rate_per_second), seed_(seed) {}

  std::int64_t NextOffsetNanos();

 private:
  const double rate_per_second_;
  const std::uint64_t seed_;
  std::int64_t index_ = 0;
  double seconds_ = 0;
};

}  // namespace pagoda::client
