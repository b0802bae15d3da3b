#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/check.h"

// simulation_test [--seed=N] [--runs=N]    N runs from seed N on; one run replays one
// seed.
namespace pagoda::scheduler::testing {
namespace {

std::uint64_t first_seed = 1;
std::uint64_t num_runs = 10'000;

std::uint64_t current_seed = 0;

TEST(SchedulerSimulation, EveryAnswerEqualsTheSoloRunAndEveryInvariantHolds) {
  base::SetFaultHook([] {
    std::fprintf(stderr, "replay with --seed=%llu --runs=1\n",
                 static_cast<unsigned long long>(current_seed));
  });
  std::printf("seeds %llu ... %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + num_runs - 1));
  SimulationTally tally;
  for (std::uint64_t run = 0; run < num_runs; ++run) {
    current_seed = first_seed + run;
    tally.Add(Simulation(current_seed).Run());
  }
  base::SetFaultHook(nullptr);
  std::printf(
      "runs %ld, steps %ld, requests %ld (finished %ld, cancelled %ld, expired %ld, failed %ld, "
      "refused %ld)\n preemptions %ld, evictions %ld, adoptions %ld, copies %ld, full hits %ld, "
      "cached tokens %ld, failed steps %ld, flushes %ld, pauses %ld\n requests with several "
      "choices "
      "%ld, rows shared %ld, preempted %ld, choices ended apart %ld, rows not finite %ld\n",
      tally.runs, tally.steps, tally.requests, tally.finished, tally.cancelled, tally.expired,
      tally.failed, tally.refused, tally.preemptions, tally.evictions, tally.adoptions,
      tally.copies, tally.full_hits, tally.cached_tokens, tally.failures, tally.flushes,
      tally.pauses, tally.groups, tally.shared_rows, tally.group_preemptions,
      tally.choices_ended_apart, tally.non_finite);
  if (num_runs < 1'000) return;  // a replay need not meet everything
  EXPECT_GT(tally.preemptions, 100);
  EXPECT_GT(tally.evictions, 100);
  EXPECT_GT(tally.adoptions, 100);
  EXPECT_GT(tally.copies, 100);
  EXPECT_GT(tally.full_hits, 100);
  EXPECT_GT(tally.failures, 100);
  EXPECT_GT(tally.failed, 0);
  EXPECT_GT(tally.expired, 0);
  EXPECT_GT(tally.cancelled, 0);
  EXPECT_GT(tally.flushes, 10);
  EXPECT_GT(tally.groups, 1'000);
  EXPECT_GT(tally.shared_rows, 1'000);
  EXPECT_GT(tally.group_preemptions, 100);
  EXPECT_GT(tally.choices_ended_apart, 100);
  EXPECT_GT(tally.non_finite, 10);
}

}  // namespace
}  // namespace pagoda::scheduler::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    using pagoda::scheduler::testing::first_seed;
    using pagoda::scheduler::testing::num_runs;
    if (argument.starts_with("--seed=")) first_seed = std::strtoull(argv[i] + 7, nullptr, 10);
    if (argument.starts_with("--runs=")) num_runs = std::strtoull(argv[i] + 7, nullptr, 10);
  }
  return RUN_ALL_TESTS();
}
