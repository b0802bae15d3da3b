#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cuda {

// Matters of speed alone: no bit depends on them.
struct CudaOpsOptions {
  // CTAs that a decode launch spreads over; two for each multiprocessor of the device.
  std::int32_t decode_ctas = 264;
  // False: decode runs as prefill of one token.
  bool splits_decode = true;
};

// The CUDA backend: the kernels of kernels/cuda over a device that has them, be it a GPU or the
// emulated one; no line differs. bf16 weights, activations rounded to bf16 before each product,
// bf16 KV, fp32 in between; the order is part 8 of kernels/README.md. Lists in parameters (tokens,
// positions, slots, blocks, work) are the host's and are uploaded. Everything else (matrices,
// weights, norm weights, tables of cosines, the pool) is memory of the device. Sampling takes
// the host's logits and is done when the call returns; scores are computed on the host.
// ResourceExhausted when the
// device has no memory for the lists.
absl::StatusOr<std::unique_ptr<Ops>> MakeCudaOps(std::unique_ptr<Device> device,
                                                 const CudaOpsOptions& options = {});

}  // namespace pagoda::kernels::cuda
