#pragma once

#include "kernels/ops.h"

// The `Requires` of every op, in one place for all backends: aborts with the shape at fault. Cheap:
// looks at sizes and, for lists of rows, at each entry once.
namespace pagoda::kernels {

void CheckShapes(const EmbedParams& params);
void CheckShapes(const RmsNormParams& params);
void CheckShapes(const AddParams& params);
void CheckShapes(const MatmulParams& params);
void CheckShapes(const RopeParams& params);
void CheckShapes(const WriteKvParams& params);
void CheckShapes(const AttentionParams& params);
void CheckShapes(const SiluMulParams& params);
void CheckShapes(const SampleParams& params);
void CheckShapes(const ScoreParams& params);
void CheckShapes(const KvView& kv, std::span<const std::uint32_t> blocks);
void CheckShapes(const KvView& kv, std::span<const BlockCopy> copies);

}  // namespace pagoda::kernels
