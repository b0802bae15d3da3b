#pragma once

#include <thread>

#include "base/runtime/mutex.h"

namespace pagoda::server {

// SIGTERM and SIGINT as an event. The first asks to drain, the second ends the process at once with
// exit code 130. Made first in main, so that every later thread inherits the blocked signals.
// Threads: any.
class ShutdownSignals {
 public:
  ShutdownSignals();
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  bool asked() const PAGODA_EXCLUDES(mutex_);
  // Blocks until the first signal.
  void Wait() PAGODA_EXCLUDES(mutex_);

 private:
  void Listen();

  mutable base::Mutex mutex_;
  base::CondVar arrived_;
  bool asked_ PAGODA_GUARDED_BY(mutex_) = false;
  std::jthread listener_;
};

}  // namespace pagoda::server
