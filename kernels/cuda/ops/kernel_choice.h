#pragma once

#include <cstdint>

#include "kernels/capabilities.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/kv_view.h"

// What the CUDA backend has, and which kernel serves what. Plain functions, any thread.
namespace pagoda::kernels::cuda {

Capabilities MakeCapabilities();

// The pool as kernels take it. Requires: bf16, token-major, and all strides multiples of 16 bytes.
KvArguments ArgumentsOf(const KvView& kv);

// Requires: a head size of MakeCapabilities.
KernelId AttentionKernelOf(std::int32_t head_size);
// `wide`: more than 8 heads share K and V.
KernelId DecodeKernelOf(std::int32_t head_size, bool wide);

}  // namespace pagoda::kernels::cuda
