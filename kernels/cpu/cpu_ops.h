#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cpu {

// What this backend can do: the same with every instruction class.
Capabilities MakeCapabilities();

struct CpuOpsOptions {
  int num_threads = 1;  // the caller included
  bool pin_threads = false;
  std::optional<InstructionClass> instruction_class;  // absent: the best that is available
};

// The fast backend for x86-64. Work is done when a call returns; the bits are those of
// kernels/README.md, whatever the instruction class and the number of threads. InvalidArgument when
// the class asked for is not available or num_threads < 1.
absl::StatusOr<std::unique_ptr<Ops>> MakeCpuOps(const CpuOpsOptions& options);

}  // namespace pagoda::kernels::cpu
