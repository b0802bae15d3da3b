#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/scheduler_state.h"
#include "tests/simulation/scenario.h"

namespace pagoda::simulation {

// What door, gate and text worker do with a request before the engine sees it.
class Gate {
 public:
  // `state` is looked at: how much waits, which epoch, what a reconfiguration will allow.
  explicit Gate(const scheduler::SchedulerState& state) : state_(state) {}

  // The validated request, with its id; their refusal otherwise.
  absl::StatusOr<scheduler::NewRequest> Make(const RequestScript& script, base::RequestId id) const;
  // Whether its tenant's bounded queue takes one more.
  bool HasRoom(const RequestScript& script) const;

 private:
  std::int32_t CapacityBlocks(base::TenantId tenant) const;

  const scheduler::SchedulerState& state_;
};

}  // namespace pagoda::simulation
