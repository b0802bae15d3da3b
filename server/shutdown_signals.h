#pragma once

#include <cstdint>
#include <thread>

#include "base/runtime/mutex.h"

namespace pagoda::server {

// Signals as events. SIGTERM and SIGINT: the first asks to drain, the second ends the process at
// once with exit code 130. SIGHUP asks to read the tenants again. Made first in main, so that every
// later thread inherits the blocked signals. Threads: any.
class ShutdownSignals {
 public:
  ShutdownSignals();
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  bool asked() const PAGODA_EXCLUDES(mutex_);
  // The same as the first SIGTERM; further calls change nothing.
  void Ask() PAGODA_EXCLUDES(mutex_);

  enum class Event : std::uint8_t { kReload, kDrain };
  // Blocks until the next one. Several SIGHUPs since the last call are one.
  Event Wait() PAGODA_EXCLUDES(mutex_);

 private:
  void Listen();

  mutable base::Mutex mutex_;
  base::CondVar arrived_;
  bool asked_ PAGODA_GUARDED_BY(mutex_) = false;
  bool signalled_ PAGODA_GUARDED_BY(mutex_) = false;  // asked by a signal
  bool reload_asked_ PAGODA_GUARDED_BY(mutex_) = false;
  std::jthread listener_;
};

}  // namespace pagoda::server
