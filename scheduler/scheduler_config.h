#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/block_keys.h"
#include "scheduler/step_budget.h"
#include "scheduler/tenant_config.h"

namespace pagoda::scheduler {

// What a scheduler is made of. Plain data; an engine without configured tenants has one, `default`.
struct SchedulerConfig {
  std::vector<std::int32_t> pool_blocks_per_group = {0};  // per KV group, the null block included
  std::int32_t block_size = 16;
  std::int32_t max_num_seqs = 64;
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t max_model_len = 0;
  std::int32_t max_logit_rows_per_step = 64;
  std::int32_t max_attention_chunks_per_step =
      0;  // one: 64 query rows x 256 context tokens; 0: derived from the others
  std::int32_t max_queued_requests = 1024;
  std::int64_t max_queued_tokens = 4 << 20;
  std::int32_t max_in_flight = 1;
  std::int32_t max_namespaces = 1024;  // of each tenant
  // Of each KV group, set aside for prefixes that are registered before the first request.
  std::int32_t public_blocks = 0;
  std::int64_t cached_block_ttl_ms = 0;  // a cached block that old is dropped and zeroed; 0: never
  std::uint32_t vocabulary_size = 0;     // 0: no request may restrict its tokens
  KeyDomain key_domain;
  std::vector<TenantConfig> tenants;  // none: the one tenant `default`, R = 0, with everything
};

// What is a tenant's own of every step, whatever the others do: its weight's part, rounded down.
struct StepFloors {
  std::int32_t slots = 0;  // README.md: s
  StepBudget step;         // README.md: f, and the same of rows and chunks
};

// Refuses (InvalidArgument, naming the key and both numbers) a config that could hang.
absl::Status CheckConfig(const SchedulerConfig& config);
// The same config with its derived bounds written down: what was 0 for "derived", and `default`.
// Requires: CheckConfig accepts it.
SchedulerConfig WithDefaults(SchedulerConfig config);

// Of tenants that may differ from the config's (Reconfigure). Require: defaults are written down.
StepFloors FloorsOf(const SchedulerConfig& config, std::span<const TenantConfig> tenants,
                    base::TenantId tenant);
// The least bound on attention chunks whose parts suffice for every tenant, and the whole for a
// step of anyone.
std::int32_t DeriveChunks(const SchedulerConfig& config);
// Blocks the tenant can ever hold.
std::int32_t CapacityOf(std::int32_t num_usable, std::span<const TenantConfig> tenants,
                        base::TenantId tenant);

}  // namespace pagoda::scheduler
