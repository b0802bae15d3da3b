#include "model/memory_plan.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/check.h"

namespace pagoda::model {
namespace {

std::string Mebibytes(std::int64_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

}  // namespace

std::int64_t MemoryPlan::BlocksFor(std::int64_t num_tokens) const {
  return base::DivUp(num_tokens, std::int64_t{block_size});
}

std::int64_t MemoryPlan::BlocksPerFullRequest() const {
  return BlocksFor(std::max(std::int64_t{max_model_len} - 1, std::int64_t{1}));
}

std::int32_t MemoryPlan::BlocksIn(std::int64_t bytes) const {
  constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(
      std::clamp(bytes / kv_bytes_per_block, std::int64_t{0}, kMostBlocks));
}

std::string MemoryPlan::Describe(std::int32_t num_blocks) const {
  const std::int64_t num_tokens = (std::int64_t{num_blocks} - 1) * block_size;
  return absl::StrCat("weights ", Mebibytes(weight_bytes), ", KV ", Mebibytes(KvBytes(num_blocks)),
                      " in ", num_blocks, " blocks of ", block_size, " tokens (", num_tokens,
                      " tokens, ", kv_bytes_per_token, " bytes each); a request of ", max_model_len,
                      " tokens takes ", BlocksPerFullRequest(), " blocks");
}

MemoryPlan PlanMemory(const base::KvGeometry& geometry, std::int64_t weight_bytes,
                      std::int32_t max_model_len) {
  PAGODA_CHECK(geometry.groups.size() == 1);
  PAGODA_CHECK(geometry.block_size > 0);
  return {.weight_bytes = weight_bytes,
          .kv_bytes_per_token = geometry.groups[0].BytesPerToken(),
          .kv_bytes_per_block = geometry.BytesPerBlock(0),
          .block_size = geometry.block_size,
          .max_model_len = max_model_len};
}

}  // namespace pagoda::model
