#pragma once

#include <cstdint>

namespace pagoda::scheduler {

// What one request used, final at its finish. Steps, tokens and blocks only: never milliseconds.
struct Receipt {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;     // of the prompt: not computed, found in the cache
  std::int32_t generated_tokens = 0;  // delivered to the client
  std::int32_t discarded_tokens = 0;  // drawn past the end by steps in flight
  std::int32_t preemptions = 0;
  std::int64_t queue_steps = 0;    // engine steps between acceptance and first admission
  std::int64_t prefill_steps = 0;  // steps with this request's prompt or recomputed tokens
  std::int64_t decode_steps = 0;
  std::int64_t blocks_touched = 0;  // handed out to this request
  std::int64_t blocks_reused = 0;   // adopted from the cache
  std::int64_t blocks_peak = 0;
  std::int64_t block_steps =
      0;  // blocks held x steps, sampled once per submitted step; shared blocks not counted
};

// Where the blocks of a pool were, summed over submitted steps, each sampled once after its plan:
// requests + shared + retiring + cached + free + public_lane + null_block == pool x steps, in
// integers.
struct BlockStepTotals {
  std::int64_t requests = 0;  // held by exactly one request: the sum of all receipts' block_steps
  std::int64_t shared = 0;    // held by several requests
  std::int64_t retiring = 0;
  std::int64_t cached = 0;
  std::int64_t free = 0;
  std::int64_t public_lane = 0;
  std::int64_t null_block = 0;
  std::int64_t steps = 0;

  std::int64_t Sum() const {
    return requests + shared + retiring + cached + free + public_lane + null_block;
  }
};

}  // namespace pagoda::scheduler
