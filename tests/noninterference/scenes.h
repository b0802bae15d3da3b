#pragma once

#include <cstdint>
#include <vector>

#include "tests/noninterference/joint_run.h"

namespace pagoda::scheduler::testing {

// What is promised to the observed tenant B (scheduler/README.md, "What is promised"), and so how
// it behaves.
enum class Promise : std::uint8_t {
  kIsolated,         // NI-1: B is isolated; anything goes
  kSameAnswers,      // NI-2: B is elastic or isolated; anything goes
  kSerialInReserve,  // NI-3: B is elastic, one request at a time, all its blocks within R
  kSerial,           // NI-4: B is elastic, one request at a time
};

// A small random server, what B does, and what the others do beside it. Made by `seed` alone.
struct Scene {
  JointRunOptions options;
  std::vector<Ask> of_b;
  std::vector<Ask> of_others;

  std::vector<Ask> all() const;
};
inline constexpr std::uint32_t kFlooder = 0, kObserved = 1;

Scene MakeScene(Promise promise, std::uint64_t seed, int fence_delay);

}  // namespace pagoda::scheduler::testing
