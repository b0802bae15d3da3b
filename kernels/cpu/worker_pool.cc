#include "kernels/cpu/worker_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include "base/check.h"

// A sleeper and the thread that would wake it follow one pattern: the sleeper says that it sleeps
// and then looks at the word again, the other writes the word and then looks for sleepers. Both
// sides are sequentially consistent, so at least one of them sees the other; the lock closes the
// gap between that look and the wait.

namespace pagoda::kernels::cpu {
namespace {

constexpr int kTaskBits = 21;
constexpr std::uint64_t kTaskMask = (std::uint64_t{1} << kTaskBits) - 1;

std::int64_t NextTask(std::uint64_t claims) {
  return static_cast<std::int64_t>(claims & kTaskMask);
}
std::int64_t NumTasks(std::uint64_t claims) {
  return static_cast<std::int64_t>((claims >> kTaskBits) & kTaskMask);
}
std::uint64_t Serial(std::uint64_t claims) { return claims >> (2 * kTaskBits); }
std::uint64_t MakeClaims(std::uint64_t serial, std::int64_t num_tasks) {
  return (serial << (2 * kTaskBits)) | (static_cast<std::uint64_t>(num_tasks) << kTaskBits);
}

void PinCurrentThread(int index) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  int remaining = index % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || remaining-- > 0) continue;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(cpu, &chosen);
    pthread_setaffinity_np(pthread_self(), sizeof(chosen), &chosen);
    return;
  }
}

}  // namespace

WorkerPool::WorkerPool(const WorkerPoolOptions& options)
    : num_threads_(options.num_threads), spin_rounds_(options.spin_rounds) {
  PAGODA_CHECK(num_threads_ >= 1);
  threads_.reserve(static_cast<std::size_t>(num_threads_ - 1));
  for (int thread = 1; thread < num_threads_; ++thread) {
    threads_.emplace_back([this, thread, pin = options.pin] {
      if (pin) PinCurrentThread(thread);
      WorkerLoop(thread);
    });
  }
}

WorkerPool::~WorkerPool() {
  {
    base::MutexLock lock(mutex_);
    stopping_.store(true);
  }
  work_published_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::RunShared(std::int64_t num_tasks, Job job) {
  PAGODA_CHECK(num_tasks <= kMaxTasks);
  job_ = job;
  num_done_.store(0, std::memory_order_relaxed);
  const std::uint64_t serial = Serial(claims_.load(std::memory_order_relaxed)) + 1;
  claims_.store(MakeClaims(serial, num_tasks));
  if (num_sleeping_.load() > 0) {
    base::MutexLock lock(mutex_);
    work_published_.NotifyAll();
  }
  RunClaimed(0);
  WaitForTasks(num_tasks);
}

std::uint64_t WorkerPool::RunClaimed(int thread) {
  std::int64_t num_run = 0;
  std::uint64_t claim = claims_.fetch_add(1, std::memory_order_acq_rel);
  std::int64_t num_tasks = 0;
  while (NextTask(claim) < NumTasks(claim)) {
    // The run cannot end, and job_ cannot change, before this claim is counted as done.
    num_tasks = NumTasks(claim);
    job_.call(job_.context, NextTask(claim), thread);
    ++num_run;
    // Counted in one go at the end, except for the last task of all, after which no claim can
    // succeed.
    claim = claims_.fetch_add(1, std::memory_order_acq_rel);
  }
  if (num_run > 0) {
    const std::int64_t num_done = num_done_.fetch_add(num_run) + num_run;
    if (num_done == num_tasks && caller_sleeping_.load()) {
      base::MutexLock lock(mutex_);
      tasks_finished_.NotifyAll();
    }
  }
  return claim;
}

void WorkerPool::WaitForTasks(std::int64_t num_tasks) {
  for (int round = 0; round < spin_rounds_; ++round) {
    if (num_done_.load(std::memory_order_acquire) == num_tasks) return;
    _mm_pause();
  }
  base::MutexLock lock(mutex_);
  caller_sleeping_.store(true);
  while (num_done_.load() != num_tasks) tasks_finished_.Wait(mutex_);
  caller_sleeping_.store(false);
}

std::uint64_t WorkerPool::WaitForNext(std::uint64_t seen) {
  for (int round = 0; round < spin_rounds_; ++round) {
    const std::uint64_t claims = claims_.load(std::memory_order_relaxed);
    if (Serial(claims) != Serial(seen)) return claims;
    if (stopping_.load(std::memory_order_relaxed)) return claims;
    _mm_pause();
  }
  base::MutexLock lock(mutex_);
  num_sleeping_.fetch_add(1);
  while (Serial(claims_.load()) == Serial(seen) && !stopping_.load()) {
    work_published_.Wait(mutex_);
  }
  num_sleeping_.fetch_sub(1);
  return claims_.load();
}

void WorkerPool::WorkerLoop(int thread) {
  std::uint64_t seen = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    WaitForNext(seen);
    seen = RunClaimed(thread);
  }
}

}  // namespace pagoda::kernels::cpu
