#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "base/bounded_ring.h"
#include "base/runtime/mutex.h"

namespace pagoda::server {

// Carries out what operators ask for, one thing after another, on a thread of its own: such
// commands wait for the engine, which a door's threads must not. Owner: main, which stops it after
// the engine, so that a command that waits for it comes back. Threads: any.
class OperatorDesk {
 public:
  using Command = std::function<void()>;

  // `settle` is asked after each command and, while it says false, again and again.
  explicit OperatorDesk(std::function<bool()> settle = [] { return true; });
  ~OperatorDesk() { Stop(); }

  // False when as many wait as may, or when it has stopped.
  [[nodiscard]] bool TryPost(Command command) PAGODA_EXCLUDES(mutex_);
  // Carries out what waits, then ends. Idempotent.
  void Stop() PAGODA_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMaxWaiting = 16;
  static constexpr std::int64_t kSettlePeriodNanos = 100'000'000;

  void ThreadLoop() PAGODA_EXCLUDES(mutex_);

  const std::function<bool()> settle_;
  base::Mutex mutex_;
  base::CondVar changed_;
  base::BoundedRing<Command> waiting_ PAGODA_GUARDED_BY(mutex_){kMaxWaiting};
  bool stopping_ PAGODA_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace pagoda::server
