#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {

std::vector<Backend> Backends() { return {{"reference", MakeReferenceOps}}; }

}  // namespace pagoda::kernels
