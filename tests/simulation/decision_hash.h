#pragma once

#include <cstdint>
#include <span>

#include "scheduler/events.h"
#include "scheduler/step_plan.h"
#include "tests/simulation/chance.h"

namespace pagoda::simulation {

// One number for everything a scheduler decided: equal numbers, equal decisions.
class DecisionHash {
 public:
  std::uint64_t value() const { return value_; }

  void AddPlan(const scheduler::StepPlan& plan);
  void AddEnd(const scheduler::FinishEvent& event);

 private:
  void Add(std::uint64_t number) { value_ = Mix(value_, number); }
  void Add(scheduler::Range range) { Add(std::uint64_t{range.begin} << 32 | range.count); }

  std::uint64_t value_ = 0;
};

}  // namespace pagoda::simulation
