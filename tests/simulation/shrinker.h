#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/scenario.h"

namespace pagoda::simulation {

// What is left out of a scenario, by place: "r3,r5,e0".
struct Omission {
  std::vector<std::uint32_t> requests;
  std::vector<std::uint32_t> events;

  std::string ToText() const;
  // None: it is not such a list.
  static std::optional<Omission> FromText(std::string_view text);
};

// Leaves out as much as it can while `fails` still says so: halves, quarters, ... single requests
// and events, again until nothing more can go. Requires: fails(scenario).
Omission Shrink(const Scenario& scenario, const std::function<bool(const Scenario&)>& fails);

}  // namespace pagoda::simulation
