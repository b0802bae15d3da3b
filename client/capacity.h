#pragma once

#include <cstdint>

#include "model/memory_plan.h"

namespace pagoda::client {

// Sequences that a server runs at once at the most.
inline constexpr std::int32_t kMostSequences = 4096;

// What a model, a batch of requests of full length and a memory come to. Every figure is whole
// blocks of the server's accounting: memory beside weights and KV pool is not counted.
struct Capacity {
  std::int64_t kv_bytes_per_request = 0;  // of full length
  std::int64_t pool_blocks = 0;           // of the batch, the null block included
  std::int64_t pool_bytes = 0;
  std::int64_t total_bytes = 0;  // weights and pool
  bool fits = false;
  std::int64_t free_bytes = 0;  // negative: so many are missing

  std::int64_t blocks_that_fit = 0;  // beside the weights, the null block included
  std::int64_t longest_context = 0;  // tokens, at this batch; 0: not even one
  std::int64_t largest_batch = 0;    // requests of this context, up to kMostSequences; 0: not one
};

// Requires: batch >= 1. `context_length` is the model's own limit. Pure.
Capacity PlanCapacity(const model::MemoryPlan& plan, std::int64_t batch,
                      std::int64_t context_length, std::int64_t memory_bytes);

}  // namespace pagoda::client
