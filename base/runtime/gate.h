#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/runtime/mutex.h"

namespace pagoda::base {

// Counts running work against a bound and can be closed: after Close no more enters, and
// WaitUntilEmpty returns when the last one has left (idea: Seastar's gate). Threads: any.
class Gate {
 public:
  explicit Gate(std::int64_t max_inside) : max_inside_(max_inside) {}
  ~Gate() {
    MutexLock lock(mutex_);
    PAGODA_CHECK(inside_ == 0);
  }

  enum class Entry : std::uint8_t { kEntered, kFull, kClosed };
  [[nodiscard]] Entry TryEnter(std::int64_t count = 1) PAGODA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (closed_) return Entry::kClosed;
    if (inside_ + count > max_inside_) return Entry::kFull;
    inside_ += count;
    return Entry::kEntered;
  }

  void Leave(std::int64_t count = 1) PAGODA_EXCLUDES(mutex_) {
    bool empty = false;
    {
      MutexLock lock(mutex_);
      PAGODA_CHECK(inside_ >= count);
      inside_ -= count;
      empty = inside_ == 0;
    }
    if (empty) emptied_.NotifyAll();
  }

  void Close() PAGODA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
  }

  // Returns false when the time came first.
  template <typename TimePoint>
  bool WaitUntilEmpty(TimePoint time) PAGODA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (inside_ > 0) {
      if (!emptied_.WaitUntil(mutex_, time) && inside_ > 0) return false;
    }
    return true;
  }

  std::int64_t num_inside() const PAGODA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return inside_;
  }

 private:
  const std::int64_t max_inside_;
  mutable Mutex mutex_;
  CondVar emptied_;
  std::int64_t inside_ PAGODA_GUARDED_BY(mutex_) = 0;
  bool closed_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::base
