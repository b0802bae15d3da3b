#pragma once

#include <cstdint>
#include <string>

#include "base/kv_geometry.h"

namespace pagoda::model {

// What a model takes, in bytes and blocks: the figures that the server shows, that admission's
// limits come from and that a planner prints. One group; pure.
struct MemoryPlan {
  std::int64_t weight_bytes = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t kv_bytes_per_block = 0;
  std::int32_t block_size = 0;     // tokens
  std::int32_t max_model_len = 0;  // tokens of one request

  // Blocks that hold `num_tokens` tokens.
  std::int64_t BlocksFor(std::int64_t num_tokens) const;
  // Of a request that fills max_model_len: the last token's KV is never written.
  std::int64_t BlocksPerFullRequest() const;
  // Blocks that fit into `bytes`, the null block included; at most what a block id can name.
  std::int32_t BlocksIn(std::int64_t bytes) const;
  std::int64_t KvBytes(std::int64_t num_blocks) const { return num_blocks * kv_bytes_per_block; }
  // One line for a log.
  std::string Describe(std::int32_t num_blocks) const;
};

// Requires: one group.
MemoryPlan PlanMemory(const base::KvGeometry& geometry, std::int64_t weight_bytes,
                      std::int32_t max_model_len);

}  // namespace pagoda::model
