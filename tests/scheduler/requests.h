#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/block_keys.h"
#include "scheduler/request.h"
#include "scheduler/scheduler.h"

namespace pagoda::scheduler::testing {

// A request as a test writes it down.
struct RequestSketch {
  std::uint64_t id = 0;
  std::vector<base::TokenId> prompt;
  RequestFields fields;
  std::optional<std::string> salt;
  bool one_request_namespace = false;
  std::uint32_t tenant = 0;
  bool attach_keys = true;  // as a text worker does; otherwise the engine thread keys it
};

NamespaceKey KeyFor(const std::optional<std::string>& salt, std::uint32_t tenant = 0);
ModelLimits LimitsFor(const SchedulerConfig& config, std::uint32_t vocabulary_size,
                      std::uint32_t tenant = 0);
// A config whose other bounds follow from the pool, the block size and the slots.
SchedulerConfig SmallConfig(std::int32_t pool_blocks, std::int32_t block_size,
                            std::int32_t max_num_seqs);

// What the door and the text worker do together; their refusal otherwise.
absl::StatusOr<NewRequest> MakeRequest(const RequestSketch& sketch, const ModelLimits& limits,
                                       const SchedulerConfig& config, std::uint64_t epoch);

// first, first + 1, ...
std::vector<base::TokenId> Ascending(base::TokenId first, std::size_t count);

}  // namespace pagoda::scheduler::testing
