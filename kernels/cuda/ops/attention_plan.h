#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/arguments.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cuda {

// What one attention launch works on, as lists for the device. Which CTA does what never changes
// bits.
struct AttentionPlan {
  std::vector<AttentionItem> items;
  std::vector<AttentionTile> tiles;  // longest context first, so that the last CTA is a short one
  std::vector<std::uint32_t> block_table;

  // Keeps its memory from call to call. `group` query heads share a KV head; a CTA has `tile_rows`
  // packed rows.
  void Make(std::span<const AttentionWork> work, std::int32_t block_size, std::int32_t group,
            std::int32_t tile_rows);
};

}  // namespace pagoda::kernels::cuda
