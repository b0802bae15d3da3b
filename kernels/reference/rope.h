#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::reference {

// Rotary position embedding, in place. Shapes were checked by the caller.
void Rope(const RopeParams& params);

}  // namespace pagoda::kernels::reference
