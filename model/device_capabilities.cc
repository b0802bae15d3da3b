#include "model/device_capabilities.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cuda/ops/kernel_choice.h"

namespace pagoda::model {

absl::StatusOr<kernels::Capabilities> CapabilitiesOf(const std::string& device) {
  if (device == "cpu") return kernels::cpu::MakeCapabilities();
  if (device == "emulated-cuda") return kernels::cuda::MakeCapabilities();
  if (device == "cuda") {
    return absl::UnimplementedError(
        "device 'cuda': this build has no CUDA driver behind it; the CUDA kernels run on 'cpu' "
        "cores as device 'emulated-cuda', slowly");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device '", device, "'; expected cpu, emulated-cuda or cuda"));
}

}  // namespace pagoda::model
