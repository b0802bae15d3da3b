#pragma once

#include "kernels/ops.h"

// Ops that work on one row at a time. Shapes were checked by the caller.
namespace pagoda::kernels::reference {

void Embed(const EmbedParams& params);
void RmsNorm(const RmsNormParams& params);
void Add(const AddParams& params);
void SiluMul(const SiluMulParams& params);

// lanes[0] after the tree of README part 2: the sum of a power of two of lanes. Changes them.
float TreeSum(std::span<float> lanes);

}  // namespace pagoda::kernels::reference
