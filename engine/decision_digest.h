#pragma once

#include <cstdint>

#include "scheduler/events.h"
#include "scheduler/step_plan.h"

namespace pagoda::engine {

// One number for everything a scheduler decided: who computes what, in which blocks, and how each
// request ended; equal numbers, equal decisions. What the tokens are is left out, so that a life
// played again with other tokens in their places has the same number.
class DecisionDigest {
 public:
  DecisionDigest() = default;
  explicit DecisionDigest(std::uint64_t value) : value_(value) {}

  std::uint64_t value() const { return value_; }
  void AddPlan(const scheduler::StepPlan& plan);
  void AddEnd(const scheduler::FinishEvent& event);

 private:
  void Add(std::uint64_t number) {
    value_ = (value_ ^ number) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 29;
  }
  void Add(std::uint32_t high, std::uint32_t low) { Add(std::uint64_t{high} << 32 | low); }

  std::uint64_t value_ = 0;
};

}  // namespace pagoda::engine
