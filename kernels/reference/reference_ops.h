#pragma once

#include <memory>

#include "kernels/ops.h"

namespace pagoda::kernels {

// Every op as plain loops, in the order of kernels/README.md: what the fast backends are compared
// with, bit for bit, and what a reader should read first. Frozen: no intrinsics, no threads, no
// cleverness. Works when called, so events are done at once.
std::unique_ptr<Ops> MakeReferenceOps();

}  // namespace pagoda::kernels
