// Tests of the tests: every planted fault changes the outcome of a run, or ends it, under some
// schedule; but for races without consequences, which races_test.cc finds.
#include "kernels/cuda/mutation.cuh"

#include <string>

#include "tests/kernels/cuda/planted_fixture.h"

namespace pagoda::kernels::cuda {
namespace {

TEST_F(PlantedFaultTest, EveryPlantedFaultIsFoundUnderSomeSchedule) {
  const Bytes sound = Outcome({});
  for (const Schedule& schedule : HostileSchedules()) {
    ASSERT_TRUE(Outcome(schedule) == sound) << Describe(schedule);
  }
  for (int number = 1; number < static_cast<int>(Mutation::kOutcomeCount); ++number) {
    std::string found_by;
    for (Schedule schedule : HostileSchedules()) {
      schedule.planted_fault = static_cast<std::uint8_t>(number);
      if (Outcome(schedule) == sound) continue;
      found_by = Describe(schedule);
      break;
    }
    EXPECT_FALSE(found_by.empty()) << "mutation " << number << " was not found";
    RecordProperty("mutation_" + std::to_string(number), found_by);
  }
}

TEST_F(PlantedFaultTest, SilentRacesHaveTheSoundOutcome) {
  const Bytes sound = Outcome({});
  for (const SilentRace& race : SilentRaces()) {
    EXPECT_TRUE(Outcome(race.schedule) == sound)
        << "mutation " << static_cast<int>(race.mutation) << ", " << Describe(race.schedule);
  }
}

}  // namespace
}  // namespace pagoda::kernels::cuda
