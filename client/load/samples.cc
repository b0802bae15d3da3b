#include "client/load/samples.h"

#include <algorithm>

namespace pagoda::client {
namespace {

constexpr double kNanosPerMilli = 1e6;

// The least kept value that at least `percent` per cent of all kept ones do not exceed.
double Percentile(const std::vector<std::int64_t>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return static_cast<double>(sorted[std::max<std::size_t>(rank, 1) - 1]) / kNanosPerMilli;
}

}  // namespace

void Samples::Add(std::int64_t nanos) {
  ++count_;
  sum_ += static_cast<double>(nanos);
  max_ = count_ == 1 ? nanos : std::max(max_, nanos);
  if (nanos_.size() < limit_) nanos_.push_back(nanos);
}

void Samples::Merge(const Samples& other) {
  if (other.count_ == 0) return;
  limit_ += other.limit_;
  nanos_.insert(nanos_.end(), other.nanos_.begin(), other.nanos_.end());
  max_ = count_ == 0 ? other.max_ : std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
}

Summary Samples::Summarize() const {
  Summary summary{.count = count_, .not_kept = count_ - static_cast<std::int64_t>(nanos_.size())};
  if (count_ == 0) return summary;
  summary.mean = sum_ / static_cast<double>(count_) / kNanosPerMilli;
  summary.max = static_cast<double>(max_) / kNanosPerMilli;
  if (nanos_.empty()) return summary;
  std::vector<std::int64_t> sorted = nanos_;
  std::sort(sorted.begin(), sorted.end());
  summary.p50 = Percentile(sorted, 50);
  summary.p90 = Percentile(sorted, 90);
  summary.p99 = Percentile(sorted, 99);
  return summary;
}

}  // namespace pagoda::client
