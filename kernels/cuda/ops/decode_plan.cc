#include "kernels/cuda/ops/decode_plan.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "kernels/cuda/kernel_table.h"

namespace pagoda::kernels::cuda {

void DecodePlan::Make(std::span<const AttentionWork> work, std::int32_t block_size,
                      std::int32_t num_shares) {
  slices.clear();
  shares.clear();
  rows.clear();
  block_table.clear();
  for (const AttentionWork& each : work) {
    PAGODA_CHECK(each.num_tokens == 1);
    const std::int32_t end = each.first_position + 1;
    const auto first_entry = static_cast<std::int32_t>(block_table.size());
    const auto table =
        each.block_table.first(static_cast<std::size_t>(base::DivUp(end, block_size)));
    block_table.insert(block_table.end(), table.begin(), table.end());
    rows.push_back({.row = each.first_row,
                    .first_slice = static_cast<std::int32_t>(slices.size()),
                    .num_slices = base::DivUp(end, kChunkTokens)});
    for (std::int32_t first = 0; first < end; first += kChunkTokens) {
      slices.push_back({.row = each.first_row,
                        .first_table_entry = first_entry,
                        .first = first,
                        .end = std::min(first + kChunkTokens, end)});
    }
  }
  const auto num_slices = static_cast<std::int64_t>(slices.size());
  const std::int64_t count = std::min<std::int64_t>(num_shares, num_slices);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto first = static_cast<std::int32_t>(i * num_slices / count);
    const auto end = static_cast<std::int32_t>((i + 1) * num_slices / count);
    shares.push_back({.first_slice = first, .num_slices = end - first});
  }
}

}  // namespace pagoda::kernels::cuda
