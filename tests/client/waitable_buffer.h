#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "base/runtime/mutex.h"

namespace pagoda::client {

// What was written to a stream, and a way to wait until something has been: looked at whenever the
// writer flushes. Threads: one writes, others wait.
class WaitableBuffer final : public std::stringbuf {
 public:
  // Returns once `text` stands in the flushed part at least `times` times.
  void AwaitText(std::string_view text, int times = 1) PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    while (Count(text) < times) changed_.Wait(mutex_);
  }

 private:
  int sync() override PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    flushed_ = str();
    changed_.NotifyAll();
    return 0;
  }

  int Count(std::string_view text) const PAGODA_REQUIRES(mutex_) {
    int count = 0;
    for (std::size_t at = flushed_.find(text); at != std::string::npos;
         at = flushed_.find(text, at + 1)) {
      ++count;
    }
    return count;
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  std::string flushed_ PAGODA_GUARDED_BY(mutex_);
};

}  // namespace pagoda::client
