#pragma once

#include "kernels/cpu/kernel_table.h"

// The one entry into each instruction class. Calling a kernel of a class that this machine lacks
// ends the process: kernels/cpu/dispatch decides.
namespace pagoda::kernels::cpu {

namespace portable {
KernelTable Table();
}
namespace avx2 {
KernelTable Table();
}
namespace avx512 {
KernelTable Table();
}
namespace avx512_vnni {
KernelTable Table();
}

}  // namespace pagoda::kernels::cpu
