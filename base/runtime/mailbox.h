#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/bounded_ring.h"
#include "base/instant.h"
#include "base/runtime/mutex.h"

namespace pagoda::base {

// Bounded many-producer, one-consumer queue. Every producer holds a permit for what it pushes
// (taken at the gate), so the capacity is the number of permits and an overflow is our bug.
// Threads: TryPush, Wake and Close from any; Drain and WaitUntil from the consumer.
template <typename T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : ring_(capacity) {}

  // Returns false, and takes nothing, when full or closed.
  [[nodiscard]] bool TryPush(T&& item) PAGODA_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (closed_ || !ring_.TryPush(std::move(item))) return false;
    }
    ready_.NotifyOne();
    return true;
  }

  // Moves all items to the end of `out`. Does not allocate when `out` has room for capacity() more.
  void Drain(std::vector<T>& out) PAGODA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    woken_ = false;
    while (!ring_.empty()) out.push_back(ring_.Pop());
  }

  // Blocks until something is there, the mailbox is woken or closed, or the time has come.
  void WaitUntil(Instant time) PAGODA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (ring_.empty() && !closed_ && !woken_) {
      if (time.is_never()) {
        ready_.Wait(mutex_);
      } else {
        const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(time.nanos())};
        if (!ready_.WaitUntil(mutex_, until)) return;
      }
    }
  }

  void Wake() PAGODA_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      woken_ = true;
    }
    ready_.NotifyOne();
  }

  void Close() PAGODA_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.NotifyAll();
  }

  bool closed() const PAGODA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return closed_;
  }

 private:
  mutable Mutex mutex_;
  CondVar ready_;
  BoundedRing<T> ring_ PAGODA_GUARDED_BY(mutex_);
  bool closed_ PAGODA_GUARDED_BY(mutex_) = false;
  bool woken_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::base
