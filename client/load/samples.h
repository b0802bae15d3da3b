#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pagoda::client {

// Of one kind of time, in milliseconds. Percentiles are nearest-rank: a value that was measured.
struct Summary {
  std::int64_t count = 0;  // all, kept or not
  std::int64_t not_kept = 0;
  double mean = 0;                            // over all
  double p50 = 0, p90 = 0, p99 = 0, max = 0;  // over those kept
};

// Measured times, kept one by one so that percentiles are exact, up to a limit that its owner
// names; beyond it only count, sum and maximum go on, and `not_kept` says so. Not thread-safe.
class Samples {
 public:
  explicit Samples(std::size_t limit) : limit_(limit) {}

  void Add(std::int64_t nanos);
  // Takes the other's in; the limits add up.
  void Merge(const Samples& other);
  // Nothing measured: count is 0 and the other figures mean nothing.
  Summary Summarize() const;

 private:
  std::size_t limit_;
  std::vector<std::int64_t> nanos_;
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace pagoda::client
