#include "kernels/cpu/worker_pool.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::kernels::cpu {
namespace {

class WorkerPoolTest : public testing::TestWithParam<int> {};

TEST_P(WorkerPoolTest, EveryTaskRunsOnceInEveryRun) {
  WorkerPool pool({.num_threads = GetParam()});
  std::vector<int> runs(1000);
  for (int round = 1; round <= 300; ++round) {
    const auto num_tasks = static_cast<std::int64_t>(1 + (round * 37) % 1000);
    pool.Run(num_tasks, [&](std::int64_t task, int) { ++runs[static_cast<std::size_t>(task)]; });
    for (std::size_t task = 0; task < runs.size(); ++task) {
      ASSERT_EQ(runs[task], task < static_cast<std::size_t>(num_tasks) ? 1 : 0)
          << "task " << task << " of " << num_tasks;
      runs[task] = 0;
    }
  }
}

TEST_P(WorkerPoolTest, ThreadsThatWentToSleepAreWokenByTheNextRun) {
  // No spinning: both sides block between any two runs.
  WorkerPool pool({.num_threads = GetParam(), .spin_rounds = 0});
  std::int64_t expected = 0;
  std::atomic<std::int64_t> sum = 0;
  for (int round = 0; round < 2000; ++round) {
    pool.Run(5, [&](std::int64_t task, int) { sum.fetch_add(task + 1); });
    expected += 15;
    ASSERT_EQ(sum.load(), expected);
  }
}

TEST_P(WorkerPoolTest, AThreadHeldUpInOneTaskDoesNotHoldUpTheOthers) {
  WorkerPool pool({.num_threads = GetParam(), .spin_rounds = 10});
  std::atomic<int> num_finished = 0;
  // Task 0 ends only after all others have: a split fixed in advance would never end.
  pool.Run(64, [&](std::int64_t task, int) {
    if (task == 0 && pool.num_threads() > 1) {
      while (num_finished.load() < 63) std::this_thread::yield();
    }
    num_finished.fetch_add(1);
  });
  EXPECT_EQ(num_finished.load(), 64);
}

TEST_P(WorkerPoolTest, EachThreadNumberIsUsedByOneThreadAtATime) {
  WorkerPool pool({.num_threads = GetParam()});
  std::vector<std::int64_t> scratch(static_cast<std::size_t>(GetParam()));  // not atomic on purpose
  for (int round = 0; round < 100; ++round) {
    pool.Run(100, [&](std::int64_t, int thread) { ++scratch[static_cast<std::size_t>(thread)]; });
  }
  std::int64_t total = 0;
  for (const std::int64_t count : scratch) total += count;
  EXPECT_EQ(total, 10'000);
}

TEST_P(WorkerPoolTest, RunsWithoutTasksAndUnusedPoolsEnd) {
  WorkerPool unused({.num_threads = GetParam()});
  WorkerPool pool({.num_threads = GetParam(), .pin = true});
  int calls = 0;
  pool.Run(0, [&](std::int64_t, int) { ++calls; });
  EXPECT_EQ(calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkerPoolTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace pagoda::kernels::cpu
