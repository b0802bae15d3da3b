#include "client/capacity.h"

#include <algorithm>

#include "base/check.h"

namespace pagoda::client {

Capacity PlanCapacity(const model::MemoryPlan& plan, std::int64_t batch,
                      std::int64_t context_length, std::int64_t memory_bytes) {
  PAGODA_CHECK(batch >= 1);
  constexpr std::int64_t kNullBlock = 1;
  Capacity capacity;
  const std::int64_t blocks_each = plan.BlocksPerFullRequest();
  capacity.kv_bytes_per_request = plan.KvBytes(blocks_each);
  capacity.pool_blocks = batch * blocks_each + kNullBlock;
  capacity.pool_bytes = plan.KvBytes(capacity.pool_blocks);
  capacity.total_bytes = plan.weight_bytes + capacity.pool_bytes;
  capacity.free_bytes = memory_bytes - capacity.total_bytes;

  capacity.blocks_that_fit =
      plan.BlocksIn(std::max<std::int64_t>(0, memory_bytes - plan.weight_bytes));
  const std::int64_t usable = std::max<std::int64_t>(0, capacity.blocks_that_fit - kNullBlock);
  capacity.fits = capacity.pool_blocks <= capacity.blocks_that_fit;
  capacity.largest_batch = std::min<std::int64_t>(usable / blocks_each, kMostSequences);
  // The last token's KV is never written, so a block more than it fills holds one token more.
  const std::int64_t blocks_of_one = usable / batch;
  if (blocks_of_one > 0) {
    capacity.longest_context = std::min(context_length, blocks_of_one * plan.block_size + 1);
  }
  return capacity;
}

}  // namespace pagoda::client
