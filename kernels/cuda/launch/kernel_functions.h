#pragma once

#include "kernels/cuda/kernel_table.h"

namespace pagoda::kernels::cuda {

// The kernel as the CUDA runtime launches it. Any thread.
const void* KernelFunction(KernelId id);

}  // namespace pagoda::kernels::cuda
