#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/simulation/scenario.h"
#include "tests/simulation/simulation.h"
#include "tests/simulation/tally.h"

namespace pagoda::simulation {

struct RunOptions {
  std::uint64_t first_seed = 1;
  std::int64_t num_steps = 0;  // at least so many, whole scenarios
  int num_jobs = 1;            // processes; each takes every num_jobs-th seed
};

struct Report {
  Tally tally;
  std::uint64_t decisions = 0;  // of all scenarios
  std::uint64_t failed_seed = 0;
  bool has_failed = false;
};

// Plays scenario after scenario in child processes until the steps are done, or one fails. A long
// run says every million steps how far each process is.
Report RunSeeds(const RunOptions& options);
// The same in this process, which a violation aborts; tells each seed before it is played, and what
// came of those before.
Report PlaySeeds(const RunOptions& options,
                 const std::function<void(std::uint64_t, const Report&)>& tell);

// The line of the check that the scenario fails, told by a child of its own; "hangs"; empty: it
// passes.
std::string FailureOf(const Scenario& scenario);
// Shrinks the scenario of a seed that fails, and says how to replay what is left.
std::string ShrinkSeed(std::uint64_t seed);

}  // namespace pagoda::simulation
