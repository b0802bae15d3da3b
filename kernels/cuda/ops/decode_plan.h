#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/arguments.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cuda {

// Which CTA works on which chunks of which contexts in one decode launch: fixed shares, so that no
// CTA waits for another. How many shares there are never changes bits.
struct DecodePlan {
  std::vector<DecodeSlice> slices;  // of a row side by side, in order
  std::vector<DecodeShare> shares;
  std::vector<DecodeRow> rows;
  std::vector<std::uint32_t> block_table;

  // Keeps its memory from call to call. Requires: every item has one token; num_shares >= 1.
  void Make(std::span<const AttentionWork> work, std::int32_t block_size, std::int32_t num_shares);
};

}  // namespace pagoda::kernels::cuda
