// hunt_mutants [--jobs N] [--steps N] [--first-steps N] [--only NAME,NAME...]
// Runs every seeded fault of the scheduler against the simulation and the scheduler's tests, says
// what met each as soon as that is known, and ends with a table. First comes the scheduler without
// a fault, which nothing may catch. Exit status: 0 when at least 95 % were caught; 2 wrong usage.
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/child_process.h"
#include "tests/simulation/mutants.h"

namespace pagoda::simulation {
namespace {

constexpr std::size_t kLeastPercent = 95;
constexpr int kSecondsOfHunt = 14'400;

struct Arguments {
  std::int64_t num_jobs = 1;
  MutantHunt hunt;
  std::vector<MutantInfo> mutants;
};

// What the hunting processes share.
struct Verdict {
  char by[120] = {};
  CaughtBy kind = CaughtBy::kNothing;
};
struct Queue {
  std::atomic<std::size_t> next = 0;
};

bool AddOnly(std::string_view names, std::vector<MutantInfo>& mutants) {
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const auto mutant = FindMutant(names.substr(0, comma));
    if (!mutant.has_value()) return false;
    mutants.push_back(*mutant);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return true;
}

bool ReadNumber(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

std::optional<Arguments> ArgumentsOf(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) return std::nullopt;
    const std::string_view value = argv[i + 1];
    const bool is_good =
        (name == "--jobs" && ReadNumber(value, arguments.num_jobs)) ||
        (name == "--steps" && ReadNumber(value, arguments.hunt.all_steps)) ||
        (name == "--first-steps" && ReadNumber(value, arguments.hunt.first_steps)) ||
        (name == "--only" && AddOnly(value, arguments.mutants));
    if (!is_good) return std::nullopt;
  }
  if (arguments.mutants.empty()) {
    arguments.mutants.assign(AllMutants().begin(), AllMutants().end());
  }
  arguments.mutants.insert(arguments.mutants.begin(), kNoMutant);
  const std::string program = argv[0];
  arguments.hunt.test_folder = program.substr(0, program.rfind('/') + 1) + "../scheduler";
  return arguments;
}

void HuntOne(const Arguments& arguments, std::size_t place, Verdict& verdict) {
  const MutantInfo& mutant = arguments.mutants[place];
  const auto started = std::chrono::steady_clock::now();
  const Catch caught = CatchMutant(mutant, arguments.hunt);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  std::snprintf(verdict.by, sizeof(Verdict::by), "%s", caught.by.c_str());
  verdict.kind = caught.kind;
  std::printf("%2zu/%zu %-26s %5.1f s  %s\n", place, arguments.mutants.size() - 1,
              std::string(mutant.name).c_str(), took.count(),
              caught.kind == CaughtBy::kNothing ? "nothing" : verdict.by);
  std::fflush(stdout);
}

int Tell(const std::vector<MutantInfo>& mutants, const std::vector<Verdict*>& verdicts) {
  std::map<CaughtBy, std::size_t> counts;
  std::printf("\n");
  const std::size_t num_mutants = mutants.size() - 1;
  for (std::size_t i = 1; i < mutants.size(); ++i) {
    const bool is_caught = verdicts[i]->kind != CaughtBy::kNothing;
    ++counts[verdicts[i]->kind];
    std::printf("%-26s %-10s %-40s %s\n", std::string(mutants[i].name).c_str(),
                std::string(mutants[i].group).c_str(), is_caught ? verdicts[i]->by : "SURVIVED",
                std::string(mutants[i].what).c_str());
  }
  if (verdicts[0]->kind != CaughtBy::kNothing) {
    std::printf("void: without a fault, this failed: %s\n", verdicts[0]->by);
    return 1;
  }
  const std::size_t num_caught = num_mutants - counts[CaughtBy::kNothing];
  std::printf("%zu of %zu caught: %zu by the first steps, %zu by a test, %zu by the long run\n",
              num_caught, num_mutants, counts[CaughtBy::kFirstSteps], counts[CaughtBy::kTest],
              counts[CaughtBy::kAllSteps]);
  return num_caught * 100 >= num_mutants * kLeastPercent ? 0 : 1;
}

int Hunt(const Arguments& arguments) {
  std::vector<Verdict*> verdicts;
  for (std::size_t i = 0; i < arguments.mutants.size(); ++i) {
    verdicts.push_back(&MakeShared<Verdict>());
  }
  Queue& queue = MakeShared<Queue>();
  std::vector<ChildProcess> hunters;
  for (std::int64_t job = 0; job < arguments.num_jobs; ++job) {
    hunters.push_back(ChildProcess::Start(
        [&] {
          for (std::size_t i = queue.next++; i < verdicts.size(); i = queue.next++) {
            HuntOne(arguments, i, *verdicts[i]);
          }
        },
        {.seconds = kSecondsOfHunt}));
  }
  bool all_ended = true;
  for (ChildProcess& hunter : hunters) all_ended &= hunter.Wait() == ChildEnd::kPassed;
  const int status = Tell(arguments.mutants, verdicts);
  return all_ended ? status : 1;
}

}  // namespace

int Main(int argc, char** argv) {
  const auto arguments = ArgumentsOf(argc, argv);
  if (arguments.has_value()) return Hunt(*arguments);
  std::fprintf(stderr,
               "usage: hunt_mutants [--jobs N] [--steps N] [--first-steps N] "
               "[--only NAME,NAME...]\n");
  return 2;
}

}  // namespace pagoda::simulation

int main(int argc, char** argv) { return pagoda::simulation::Main(argc, argv); }
