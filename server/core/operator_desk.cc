#include "server/core/operator_desk.h"

#include <chrono>
#include <utility>

namespace pagoda::server {

OperatorDesk::OperatorDesk(std::function<bool()> settle) : settle_(std::move(settle)) {
  thread_ = std::jthread([this] { ThreadLoop(); });
}

bool OperatorDesk::TryPost(Command command) {
  {
    base::MutexLock lock(mutex_);
    if (stopping_ || !waiting_.TryPush(std::move(command))) return false;
  }
  changed_.NotifyAll();
  return true;
}

void OperatorDesk::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void OperatorDesk::ThreadLoop() {
  bool settled = true;
  while (true) {
    Command command;
    {
      base::MutexLock lock(mutex_);
      const auto until =
          std::chrono::steady_clock::now() + std::chrono::nanoseconds(kSettlePeriodNanos);
      bool in_time = true;
      while (waiting_.empty() && !stopping_ && in_time) {
        if (settled) {
          changed_.Wait(mutex_);
        } else {
          in_time = changed_.WaitUntil(mutex_, until);
        }
      }
      if (waiting_.empty() && stopping_) return;
      if (!waiting_.empty()) command = waiting_.Pop();
    }
    if (command) command();
    settled = settle_();
  }
}

}  // namespace pagoda::server
