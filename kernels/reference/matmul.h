#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::reference {

// out = x w^T, with weights in PackLayout::kRows. Shapes were checked by the caller.
void Matmul(const MatmulParams& params);

}  // namespace pagoda::kernels::reference
