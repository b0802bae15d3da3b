#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "scheduler/scheduler_config.h"
#include "server/config/server_config.h"
#include "server/core/served_model.h"

namespace pagoda::server {

// A prefix of the configuration in the model's tokens: as the prompts that should begin with it.
struct EncodedPrefix {
  std::string name;
  std::vector<base::TokenId> tokens;
  std::vector<base::TenantId> readers;  // none: everybody
};

// Text like that of a Generate, a system message as the model's chat template writes it at the head
// of a Chat. Errors name the prefix.
absl::StatusOr<std::vector<EncodedPrefix>> EncodePrefixes(const ServerConfig& config,
                                                          const ServedModel& model);

// Blocks that they fill together.
std::int32_t PublicBlocksOf(std::span<const EncodedPrefix> prefixes, std::int32_t block_size);

// Refuses a prefix that leaves no token of max_model_len, and public blocks that leave no room for
// a request of full length, with the numbers.
absl::Status CheckPrefixes(const ServerConfig& config, std::span<const EncodedPrefix> prefixes,
                           const scheduler::SchedulerConfig& scheduling);
// Refuses a prefix that no tenant may hold while it is computed. Requires: a config that the
// scheduler accepts.
absl::Status CheckPrefixesAreHeld(const ServerConfig& config,
                                  std::span<const EncodedPrefix> prefixes,
                                  const scheduler::SchedulerConfig& scheduling);

}  // namespace pagoda::server
