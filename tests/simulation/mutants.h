#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/mutants.h"

namespace pagoda::simulation {

struct MutantInfo {
  scheduler::Mutant mutant = scheduler::Mutant::kNone;
  std::string_view name;   // without the k
  std::string_view group;  // what it is a fault of
  std::string_view what;   // one line
};
inline constexpr MutantInfo kNoMutant = {
    .mutant = scheduler::Mutant::kNone, .name = "None", .group = "", .what = "as it is"};
std::span<const MutantInfo> AllMutants();
std::optional<MutantInfo> FindMutant(std::string_view name);

// How far one mutant is followed.
struct MutantHunt {
  std::int64_t first_steps = 60'000;  // simulated before the tests are run
  // Simulated when the tests have not met it; so many suffice for the floors.
  std::int64_t all_steps = 1'000'000;
  std::string test_folder;  // of the scheduler's test programs; empty: none
};
enum class CaughtBy : std::uint8_t { kNothing, kFirstSteps, kTest, kAllSteps };
struct Catch {
  CaughtBy kind = CaughtBy::kNothing;
  std::string by;  // the line of a check, a test, what the simulation met too seldom
};
// Each try has a process of its own.
Catch CatchMutant(const MutantInfo& mutant, const MutantHunt& hunt);

}  // namespace pagoda::simulation
