#include "tests/simulation/runner.h"

#include <cstdio>
#include <vector>

#include "tests/simulation/child_process.h"
#include "tests/simulation/shrinker.h"

namespace pagoda::simulation {
namespace {

constexpr int kSecondsOfScenario = 20;
constexpr int kSecondsOfRun = 14'400;
constexpr std::int64_t kStepsBetweenLines = 1'000'000;

// What a child leaves behind, also when it aborts.
struct Progress {
  Report report;
  std::uint64_t seed = 0;  // in play
  std::int64_t steps_said = 0;
};

void Note(std::uint64_t seed, const Report& report, int job, Progress& progress) {
  progress.seed = seed;
  progress.report = report;
  const std::int64_t steps = report.tally[Seen::kSteps];
  if (steps - progress.steps_said < kStepsBetweenLines) return;
  progress.steps_said = steps;
  std::printf("process %d: %lld steps before seed %llu\n", job, static_cast<long long>(steps),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
}

}  // namespace

Report PlaySeeds(const RunOptions& options,
                 const std::function<void(std::uint64_t, const Report&)>& tell) {
  Report report;
  const auto stride = static_cast<std::uint64_t>(options.num_jobs);
  for (std::uint64_t seed = options.first_seed; report.tally[Seen::kSteps] < options.num_steps;
       seed += stride) {
    tell(seed, report);
    const Scenario scenario = MakeScenario(Chance(seed));
    const Outcome outcome = Simulation(scenario).Run();
    report.tally.Add(outcome.tally);
    report.decisions = Mix(report.decisions, outcome.decisions);
  }
  return report;
}

Report RunSeeds(const RunOptions& options) {
  std::vector<Progress*> progress;
  std::vector<ChildProcess> children;
  for (int job = 0; job < options.num_jobs; ++job) {
    progress.push_back(&MakeShared<Progress>());
    RunOptions own = options;
    own.first_seed += static_cast<std::uint64_t>(job);
    own.num_steps = options.num_steps / options.num_jobs;
    Progress& mine = *progress.back();
    children.push_back(ChildProcess::Start(
        [&mine, own, job] {
          mine.report = PlaySeeds(own, [&mine, job](std::uint64_t seed, const Report& report) {
            Note(seed, report, job, mine);
          });
        },
        {.seconds = kSecondsOfRun}));
  }
  Report report;
  for (std::size_t job = 0; job < children.size(); ++job) {
    if (children[job].Wait() != ChildEnd::kPassed) {
      report.has_failed = true;
      report.failed_seed = progress[job]->seed;
    }
    report.tally.Add(progress[job]->report.tally);
    report.decisions = Mix(report.decisions, progress[job]->report.decisions);
  }
  return report;
}

std::string FailureOf(const Scenario& scenario) {
  const ChildReport report = RunInChild([&] { Simulation(scenario).Run(); },
                                        {.seconds = kSecondsOfScenario, .is_quiet = true});
  if (report.end == ChildEnd::kPassed) return {};
  if (report.end == ChildEnd::kHung) return "hangs";
  const std::size_t found = report.said.find(": check failed");
  if (found == std::string::npos) return "dies";
  const std::size_t line = report.said.rfind('\n', found);
  return report.said.substr(line + 1, found - line - 1);
}

std::string ShrinkSeed(std::uint64_t seed) {
  const Scenario scenario = MakeScenario(Chance(seed));
  const std::string replay = "simulate --seed " + std::to_string(seed) + " --trace";
  const std::string failure = FailureOf(scenario);
  if (failure.empty()) return "does not fail alone: " + replay;
  const Omission omission =
      Shrink(scenario, [&](const Scenario& rest) { return FailureOf(rest) == failure; });
  const std::size_t requests = scenario.requests.size() - omission.requests.size();
  const Scenario rest = scenario.Without(omission.requests, omission.events);
  return failure + ", shrunk from " + std::to_string(scenario.requests.size()) + " requests and " +
         std::to_string(scenario.events.size()) + " events to " + std::to_string(requests) +
         " and " + std::to_string(rest.events.size()) + ":\n  " + replay + " --without " +
         omission.ToText();
}

}  // namespace pagoda::simulation
