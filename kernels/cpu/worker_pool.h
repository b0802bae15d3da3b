#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/runtime/mutex.h"

namespace pagoda::kernels::cpu {

struct WorkerPoolOptions {
  int num_threads = 1;  // the caller included
  bool pin = false;     // thread i to the i-th CPU this process may use
  // Looks at the shared word before a thread blocks: tens of microseconds, longer than the gap
  // between two operations of a step and shorter than anybody would notice.
  int spin_rounds = 2000;
};

// Runs numbered tasks on a fixed set of threads. Every task is claimed from one counter, so a
// thread that comes late or is descheduled takes fewer tasks and holds up at most the one it has.
// Which thread runs a task is chance: a task's result must not depend on it. Owner: the CPU device.
// Threads: Run is called by one thread at a time and takes part; the others belong to the pool.
// Nothing is allocated after construction.
class WorkerPool {
 public:
  static constexpr std::int64_t kMaxTasks = 1 << 20;

  explicit WorkerPool(const WorkerPoolOptions& options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls body(task, thread) once for every task in 0 ... num_tasks - 1, thread in 0 ...
  // num_threads() - 1 (0: the caller), and returns when all have returned. What the tasks wrote is
  // visible to the caller. Requires: num_tasks <= kMaxTasks; body does not call Run.
  template <typename Body>
  void Run(std::int64_t num_tasks, const Body& body) {
    if (num_threads_ == 1 || num_tasks <= 1) {
      for (std::int64_t task = 0; task < num_tasks; ++task) body(task, 0);
      return;
    }
    RunShared(num_tasks, {[](const void* context, std::int64_t task, int thread) {
                            (*static_cast<const Body*>(context))(task, thread);
                          },
                          &body});
  }

 private:
  struct Job {
    void (*call)(const void* context, std::int64_t task, int thread) = nullptr;
    const void* context = nullptr;
  };

  void RunShared(std::int64_t num_tasks, Job job);
  void WorkerLoop(int thread);
  // Claims and runs tasks until none is left; returns the word it last saw.
  std::uint64_t RunClaimed(int thread);
  std::uint64_t WaitForNext(std::uint64_t seen);
  void WaitForTasks(std::int64_t num_tasks);

  const int num_threads_;
  const int spin_rounds_;

  // Serial number of the run, its number of tasks, and the next task, in one word: a claim (one
  // fetch_add) says itself whether it is valid, so a late thread can neither repeat a task nor
  // enter a run with the job of another.
  alignas(64) std::atomic<std::uint64_t> claims_{0};
  alignas(64) std::atomic<std::int64_t> num_done_{0};
  alignas(64) Job job_;  // written between runs; read only by the holder of a valid claim
  std::atomic<int> num_sleeping_{0};
  std::atomic<bool> caller_sleeping_{false};
  std::atomic<bool> stopping_{false};

  base::Mutex mutex_;
  base::CondVar work_published_;
  base::CondVar tasks_finished_;
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::kernels::cpu
