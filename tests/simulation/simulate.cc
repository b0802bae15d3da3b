// simulate --steps N [--seed S] [--jobs N]            scenarios from seed S on, until N steps
// simulate --seed S [--trace] [--without r1,e2,...]   that seed alone, every decision said
// A scenario that fails is shrunk, and how to replay what is left is printed. Exit status: 0 all
// held and nothing was met too seldom; 1 a violation or a missed floor; 2 wrong usage.
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/simulation/runner.h"
#include "tests/simulation/shrinker.h"

namespace pagoda::simulation {
namespace {

struct Arguments {
  RunOptions run;
  bool trace = false;
  Omission without;
};

std::optional<std::int64_t> NumberOf(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<Arguments> ArgumentsOf(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--trace") {
      arguments.trace = true;
      continue;
    }
    if (++i == argc) return std::nullopt;
    const std::string_view value = argv[i];
    if (name == "--without") {
      const auto without = Omission::FromText(value);
      if (!without.has_value()) return std::nullopt;
      arguments.without = *without;
      continue;
    }
    const auto number = NumberOf(value);
    if (!number.has_value()) return std::nullopt;
    if (name == "--steps") {
      arguments.run.num_steps = *number;
    } else if (name == "--seed") {
      arguments.run.first_seed = static_cast<std::uint64_t>(*number);
    } else if (name == "--jobs" && *number > 0) {
      arguments.run.num_jobs = static_cast<int>(*number);
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

int PlayOne(const Arguments& arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // an abort keeps what was said
  const std::uint64_t seed = arguments.run.first_seed;
  const Scenario scenario =
      MakeScenario(Chance(seed)).Without(arguments.without.requests, arguments.without.events);
  std::printf("seed %llu: pool of %d blocks of %d, %d slots, %d tokens, fence delay %d\n",
              static_cast<unsigned long long>(seed), scenario.pool_blocks(),
              scenario.config.block_size, scenario.config.max_num_seqs,
              scenario.config.max_num_batched_tokens, scenario.fence_delay);
  for (const scheduler::TenantConfig& tenant : scenario.config.tenants) {
    std::printf("  tenant %s: weight %d, reserve %d%s\n", tenant.name.c_str(), tenant.weight,
                tenant.reserve_blocks, tenant.isolated ? ", isolated" : "");
  }
  std::fflush(stdout);
  const Outcome outcome = Simulation(scenario, arguments.trace ? stdout : nullptr).Run();
  std::printf("%lld steps, decisions %016llx\n",
              static_cast<long long>(outcome.tally[Seen::kSteps]),
              static_cast<unsigned long long>(outcome.decisions));
  return 0;
}

// Of all processes that have ended.
double ProcessorSeconds() {
  rusage used{};
  PAGODA_CHECK(getrusage(RUSAGE_CHILDREN, &used) == 0);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int RunMany(const RunOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  std::printf("seeds from %llu on, %lld steps, %d processes\n",
              static_cast<unsigned long long>(options.first_seed),
              static_cast<long long>(options.num_steps), options.num_jobs);
  const Report report = RunSeeds(options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  if (report.has_failed) {
    std::printf("seed %llu failed\n", static_cast<unsigned long long>(report.failed_seed));
    std::printf("%s\n", ShrinkSeed(report.failed_seed).c_str());
    return 1;
  }
  std::printf("%s%lld steps: %.0f s, %.0f s of processors, decisions %016llx\n",
              Describe(report.tally).c_str(), static_cast<long long>(report.tally[Seen::kSteps]),
              took.count(), ProcessorSeconds(), static_cast<unsigned long long>(report.decisions));
  if (options.num_steps < kStepsForFloors) return 0;
  const std::string missed = MissedFloors(report.tally);
  std::printf("%s", missed.c_str());
  return missed.empty() ? 0 : 1;
}

}  // namespace

int Main(int argc, char** argv) {
  const auto arguments = ArgumentsOf(argc, argv);
  if (!arguments.has_value()) {
    std::fprintf(stderr,
                 "usage: simulate --steps N [--seed S] [--jobs N]\n"
                 "       simulate --seed S [--trace] [--without r1,e2,...]\n");
    return 2;
  }
  return arguments->run.num_steps > 0 ? RunMany(arguments->run) : PlayOne(*arguments);
}

}  // namespace pagoda::simulation

int main(int argc, char** argv) { return pagoda::simulation::Main(argc, argv); }
