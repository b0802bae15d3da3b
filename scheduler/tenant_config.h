#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"

namespace pagoda::scheduler {

// Without configured tenants there is this one, with no reserve and all of common, of the budget
// and of the slots.
inline constexpr base::TenantId kDefaultTenant{0};

// What the operator gives one tenant. By TenantId: the i-th of SchedulerConfig::tenants.
struct TenantConfig {
  std::string name;                      // for messages and journals only
  std::int32_t weight = 1;               // > 0: its part of every step and of the slots
  std::int32_t reserve_blocks = 0;       // README.md: R
  std::int32_t max_queued_requests = 0;  // 0: an even share of the shared bound
  std::int64_t max_queued_tokens = 0;    // 0: likewise
  std::int32_t max_running = 0;          // concurrent requests; 0: no limit of its own
  bool isolated = false;                 // never borrows: its transcript is its own alone
};

// How one tenant fares.
struct TenantStats {
  std::int32_t num_waiting = 0, num_running = 0;  // requests
  std::int64_t queued_tokens = 0;
  std::int32_t blocks_pinned = 0, blocks_cached = 0;
  std::int64_t num_admitted = 0, num_preemptions = 0;
  std::int64_t shared_block_steps = 0;  // of blocks that several of its sequences held (receipt.h)
  std::int64_t num_slot_victims = 0;    // of the preemptions: for another tenant's slots
  // Steps in which it waited for what it could have had alone; those of them at whose start its
  // credit was cut.
  std::int64_t num_eligible_steps = 0, num_lifts = 0;
  std::int64_t prompt_tokens = 0, generated_tokens = 0;  // first admissions; accepted
};

}  // namespace pagoda::scheduler
