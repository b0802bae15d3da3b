// hunt_mutants [--jobs N] [--steps N] [--only NAME]   runs every seeded fault of the scheduler
// against the simulation and the scheduler's tests, and prints what caught it. Exit status: 0 when
// at least 95 % were caught.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/child_process.h"
#include "tests/simulation/mutants.h"

namespace pagoda::simulation {
namespace {

constexpr std::size_t kLeastPercent = 95;

struct Verdict {
  char by[120] = {};
};

struct Arguments {
  std::size_t num_jobs = 1;
  MutantHunt hunt;
  std::string_view only;
};

Arguments ArgumentsOf(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--jobs") {
      arguments.num_jobs = static_cast<std::size_t>(std::max(1, std::atoi(argv[i + 1])));
    }
    if (name == "--steps") arguments.hunt.all_steps = std::atoll(argv[i + 1]);
    if (name == "--only") arguments.only = argv[i + 1];
  }
  const std::string program = argv[0];
  arguments.hunt.test_folder = program.substr(0, program.rfind('/') + 1) + "../scheduler";
  return arguments;
}

int Hunt(const Arguments& arguments) {
  const auto mutants = AllMutants();
  std::vector<Verdict*> verdicts;
  for (std::size_t i = 0; i < mutants.size(); ++i) verdicts.push_back(&MakeShared<Verdict>());
  std::vector<ChildProcess> workers;
  for (std::size_t job = 0; job < arguments.num_jobs; ++job) {
    workers.push_back(ChildProcess::Start(
        [&, job] {
          for (std::size_t i = job; i < mutants.size(); i += arguments.num_jobs) {
            if (!arguments.only.empty() && mutants[i].name != arguments.only) continue;
            const std::string by = CatchMutant(mutants[i], arguments.hunt);
            std::snprintf(verdicts[i]->by, sizeof(Verdict::by), "%s", by.c_str());
          }
        },
        {.seconds = 7'200}));
  }
  bool all_ended = true;
  for (ChildProcess& worker : workers) all_ended &= worker.Wait() == ChildEnd::kPassed;
  std::size_t num_tried = 0, num_caught = 0;
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    if (!arguments.only.empty() && mutants[i].name != arguments.only) continue;
    const std::string_view by = verdicts[i]->by;
    ++num_tried;
    num_caught += !by.empty();
    std::printf("%-26s %-10s %-40s %s\n", std::string(mutants[i].name).c_str(),
                std::string(mutants[i].group).c_str(), by.empty() ? "SURVIVED" : verdicts[i]->by,
                std::string(mutants[i].what).c_str());
  }
  std::printf("%zu of %zu caught\n", num_caught, num_tried);
  return all_ended && num_caught * 100 >= num_tried * kLeastPercent ? 0 : 1;
}

}  // namespace

int Main(int argc, char** argv) { return Hunt(ArgumentsOf(argc, argv)); }

}  // namespace pagoda::simulation

int main(int argc, char** argv) { return pagoda::simulation::Main(argc, argv); }
