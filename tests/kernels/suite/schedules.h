#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/emulation/schedule.h"

// Under which schedules tests of emulated kernels run. PAGODA_TEST_SCHEDULES=all asks for every
// order with both times of copies and one or two resident CTAs; without it tests take a few.
namespace pagoda::kernels {

inline bool WantsEverySchedule() {
  const char* const asked = std::getenv("PAGODA_TEST_SCHEDULES");
  return asked != nullptr && std::string_view(asked) == "all";
}

inline std::vector<emulation::Schedule> EverySchedule() {
  using emulation::CopyTime;
  using emulation::Order;
  std::vector<emulation::Schedule> all;
  for (const Order order :
       {Order::kForward, Order::kReverse, Order::kRandom, Order::kGreedy, Order::kGreedyReverse}) {
    for (const CopyTime copies : {CopyTime::kLate, CopyTime::kEarly}) {
      for (const int resident : {1, 2}) {
        all.push_back({.order = order, .copies = copies, .seed = 11, .resident_ctas = resident});
      }
    }
  }
  return all;
}

// Letters, digits and underscores alone, so that a test can be named by it.
inline std::string Describe(const emulation::Schedule& schedule) {
  constexpr const char* kOrders[] = {"forward", "reverse", "random", "greedy", "greedy_reverse"};
  return std::string(kOrders[static_cast<std::size_t>(schedule.order)]) +
         (schedule.copies == emulation::CopyTime::kLate ? "_late" : "_early") + "_resident_" +
         std::to_string(schedule.resident_ctas);
}

}  // namespace pagoda::kernels
