#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "kernels/ops.h"

// Whole-block work on the KV pool. Free functions over a view; the caller owns order and threads.
namespace pagoda::kernels::cpu {

// Every K and V byte of the block, in all layers.
void ZeroBlock(const KvView& kv, std::uint32_t block);
// The first copy.num_slots tokens, in all layers.
void CopySlots(const KvView& kv, const BlockCopy& copy);

}  // namespace pagoda::kernels::cpu
