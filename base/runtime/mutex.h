#pragma once

#include <condition_variable>
#include <mutex>

// Annotations of clang's thread-safety analysis; nothing elsewhere.
#if defined(__clang__)
#define PAGODA_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define PAGODA_THREAD_ANNOTATION(x)
#endif
#define PAGODA_CAPABILITY(name) PAGODA_THREAD_ANNOTATION(capability(name))
#define PAGODA_SCOPED_CAPABILITY PAGODA_THREAD_ANNOTATION(scoped_lockable)
#define PAGODA_GUARDED_BY(mutex) PAGODA_THREAD_ANNOTATION(guarded_by(mutex))
#define PAGODA_REQUIRES(...) PAGODA_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define PAGODA_EXCLUDES(...) PAGODA_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define PAGODA_ACQUIRE(...) PAGODA_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define PAGODA_RELEASE(...) PAGODA_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define PAGODA_NO_ANALYSIS PAGODA_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace pagoda::base {

// std::mutex with annotations. Locks are leaves: at most one is held, and nothing is called or
// allocated under it.
class PAGODA_CAPABILITY("mutex") Mutex {
 public:
  void Lock() PAGODA_ACQUIRE() { mutex_.lock(); }
  void Unlock() PAGODA_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class PAGODA_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PAGODA_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() PAGODA_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Condition variable for Mutex. Wakeups may be spurious: wait in a loop over the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) PAGODA_REQUIRES(mutex) PAGODA_NO_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false when the time ran out.
  template <typename TimePoint>
  bool WaitUntil(Mutex& mutex, TimePoint time) PAGODA_REQUIRES(mutex) PAGODA_NO_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_until(lock, time) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace pagoda::base
