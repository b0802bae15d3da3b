#pragma once

#include <atomic>
#include <cstdint>

namespace pagoda::base {

// A number that only grows. Written by one or many threads, read by the monitor.
class Counter {
 public:
  void Add(std::int64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// A number that is set to what is true now.
class Gauge {
 public:
  void Set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

}  // namespace pagoda::base
