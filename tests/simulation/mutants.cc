#include "tests/simulation/mutants.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/check.h"
#include "tests/simulation/child_process.h"
#include "tests/simulation/runner.h"

namespace pagoda::simulation {
namespace {

constexpr MutantInfo kMutants[] = {
#define PAGODA_LIST_MUTANT(name, group, what) \
  {scheduler::Mutant::name, std::string_view(#name).substr(1), #group, what},
    PAGODA_MUTANTS(PAGODA_LIST_MUTANT)
#undef PAGODA_LIST_MUTANT
};

constexpr int kSecondsOfTry = 900;

// Programs of tests/scheduler, and what of them: the small world's every order is left out for its
// time.
struct TestProgram {
  std::string_view name;
  std::string_view filter;
};
constexpr std::array kPrograms = {TestProgram{"scheduler_parts_test", "*"},
                                  TestProgram{"scheduler_test", "-SmallWorld*"}};

std::string LineOfFailure(const std::string& said) {
  const std::size_t found = said.find(": check failed");
  if (found == std::string::npos) return "dies";
  std::string where = said.substr(0, found);
  where = where.substr(where.rfind('\n') + 1);
  return where.substr(where.rfind('/') + 1);
}

std::string CatchBySimulation(const MutantInfo& mutant, std::int64_t num_steps, bool with_floors) {
  const ChildReport report = RunInChild(
      [&] {
        scheduler::active_mutant = mutant.mutant;
        const Report played =
            PlaySeeds({.first_seed = 1, .num_steps = num_steps}, [](auto, auto&) {});
        const std::string missed = MissedFloors(played.tally);
        if (with_floors && num_steps >= kStepsForFloors && !missed.empty()) {
          std::fprintf(stderr, "floor: %s", missed.substr(0, missed.find(':')).c_str());
          _exit(1);
        }
      },
      {.seconds = kSecondsOfTry, .is_quiet = true});
  if (report.end == ChildEnd::kPassed) return {};
  if (report.end == ChildEnd::kHung) return "hangs";
  if (report.said.starts_with("floor: ")) return report.said;
  return LineOfFailure(report.said);
}

std::string CatchByTests(const MutantInfo& mutant, const std::string& folder) {
  for (const TestProgram& program : kPrograms) {
    const std::string path = folder + "/" + std::string(program.name);
    if (access(path.c_str(), X_OK) != 0) continue;
    const std::string filter = "--gtest_filter=" + std::string(program.filter);
    const ChildReport report = RunInChild(
        [&] {
          setenv("PAGODA_MUTANT", std::string(mutant.name).c_str(), 1);
          execl(path.c_str(), path.c_str(), filter.c_str(), "--gtest_brief=1", nullptr);
          _exit(1);
        },
        {.seconds = kSecondsOfTry, .is_quiet = true});
    if (report.end == ChildEnd::kPassed) continue;
    const std::size_t failed = report.said.find("[  FAILED  ] ");
    if (failed == std::string::npos) return std::string(program.name);
    const std::string name = report.said.substr(failed + 13);
    return "test " + name.substr(0, name.find_first_of(" (\n"));
  }
  return {};
}

}  // namespace

std::span<const MutantInfo> AllMutants() { return kMutants; }

std::optional<MutantInfo> FindMutant(std::string_view name) {
  const auto found = std::ranges::find(kMutants, name, &MutantInfo::name);
  if (found == std::end(kMutants)) return std::nullopt;
  return *found;
}

Catch CatchMutant(const MutantInfo& mutant, const MutantHunt& hunt) {
  std::string by = CatchBySimulation(mutant, hunt.first_steps, /*with_floors=*/false);
  if (!by.empty()) return {CaughtBy::kFirstSteps, by};
  if (!hunt.test_folder.empty()) by = CatchByTests(mutant, hunt.test_folder);
  if (!by.empty()) return {CaughtBy::kTest, by};
  by = CatchBySimulation(mutant, hunt.all_steps, /*with_floors=*/true);
  if (!by.empty()) return {CaughtBy::kAllSteps, by};
  return {};
}

}  // namespace pagoda::simulation
