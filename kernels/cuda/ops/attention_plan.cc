#include "kernels/cuda/ops/attention_plan.h"

#include <algorithm>
#include <tuple>

#include "base/bits.h"

namespace pagoda::kernels::cuda {

void AttentionPlan::Make(std::span<const AttentionWork> work, std::int32_t block_size,
                         std::int32_t group, std::int32_t tile_rows) {
  items.clear();
  tiles.clear();
  block_table.clear();
  for (const AttentionWork& each : work) {
    if (each.num_tokens == 0) continue;
    const auto num_blocks =
        static_cast<std::size_t>(base::DivUp(each.first_position + each.num_tokens, block_size));
    const auto item = static_cast<std::int32_t>(items.size());
    items.push_back({.first_row = each.first_row,
                     .num_tokens = each.num_tokens,
                     .first_position = each.first_position,
                     .first_table_entry = static_cast<std::int32_t>(block_table.size())});
    const auto table = each.block_table.first(num_blocks);
    block_table.insert(block_table.end(), table.begin(), table.end());
    for (std::int32_t row = 0; row < each.num_tokens * group; row += tile_rows) {
      tiles.push_back({.item = item, .first_packed_row = row});
    }
  }
  const auto end_of = [&](const AttentionTile& tile) {
    const AttentionItem& item = items[static_cast<std::size_t>(tile.item)];
    return item.first_position +
           std::min(item.num_tokens, base::DivUp(tile.first_packed_row + tile_rows, group));
  };
  std::sort(tiles.begin(), tiles.end(), [&](const AttentionTile& a, const AttentionTile& b) {
    const auto key = [&end_of](const AttentionTile& tile) {
      return std::tuple(-end_of(tile), tile.item, tile.first_packed_row);
    };
    return key(a) < key(b);
  });
}

}  // namespace pagoda::kernels::cuda
