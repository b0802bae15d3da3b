#pragma once

#include "kernels/cuda/kernel_table.h"
#include "kernels/emulation/emulator.h"

namespace pagoda::kernels::emulation {

// The kernel compiled for the host: the same source, in a namespace of its own. Any thread.
EmulatedKernel KernelOf(cuda::KernelId id);

}  // namespace pagoda::kernels::emulation
