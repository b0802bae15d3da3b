// libFuzzer entry: the bytes are the dice that a scenario is thrown with; playing it aborts on any
// violation, as under a seed.

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/simulation/scenario.h"
#include "tests/simulation/simulation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pagoda::simulation::Chance;
  const auto scenario = pagoda::simulation::MakeScenario(Chance(std::span(data, size)));
  pagoda::simulation::Simulation(scenario).Run();
  return 0;
}
