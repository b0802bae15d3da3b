#pragma once

#include <functional>
#include <utility>

#include "base/runtime/mutex.h"

namespace pagoda::client {

// What Ctrl-C means right now. main's signal thread calls Trigger; whoever does something that can
// be cancelled says so with a Scope for as long as it lasts. Threads: any. The action runs on the
// signal thread, with the lock held, so that it never outlives its scope: it must be short and must
// not touch the Interrupts.
class Interrupts {
 public:
  class Scope {
   public:
    Scope(Interrupts& interrupts, std::function<void()> action) : interrupts_(interrupts) {
      outer_ = interrupts_.Exchange(std::move(action));
    }
    ~Scope() { interrupts_.Exchange(std::move(outer_)); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interrupts& interrupts_;
    std::function<void()> outer_;
  };

  // False when nothing is there to be interrupted.
  bool Trigger() PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    if (!action_) return false;
    action_();
    return true;
  }

 private:
  std::function<void()> Exchange(std::function<void()> action) PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    return std::exchange(action_, std::move(action));
  }

  base::Mutex mutex_;
  std::function<void()> action_ PAGODA_GUARDED_BY(mutex_);
};

}  // namespace pagoda::client
