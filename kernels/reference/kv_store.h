#pragma once

#include <cstdint>
#include <span>

#include "kernels/ops.h"

// One element of the KV pool at a time, through the strides alone. Shapes were checked by the
// caller.
namespace pagoda::kernels::reference {

// Element d of `slot` (block * block_size + token).
struct KvPlace {
  std::int32_t layer = 0;
  std::int32_t head = 0;
  std::int64_t slot = 0;
  std::int32_t d = 0;
};
float ReadKv(const KvView& kv, const KvPlane& plane, const KvPlace& place);
// `value` rounded to the KV type, as an fp32 number.
float RoundToKv(base::KvType type, float value);

void WriteKv(const WriteKvParams& params);
void ZeroBlocks(const KvView& kv, std::span<const std::uint32_t> blocks);
void CopyBlocks(const KvView& kv, std::span<const BlockCopy> copies);

}  // namespace pagoda::kernels::reference
