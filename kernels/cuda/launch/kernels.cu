// Every kernel of the table for the GPU, in its order.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/decode.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/kv_kernels.cuh"
#include "kernels/cuda/launch/kernel_functions.h"
#include "kernels/cuda/row_kernels.cuh"
#include "kernels/cuda/sample.cuh"

namespace pagoda::kernels::cuda {
namespace {

template <typename Arguments>
const void* Address(void (*kernel)(Arguments)) {
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace

const void* KernelFunction(KernelId id) {
  switch (id) {
    case KernelId::kEmbed:
      return Address(&Embed);
    case KernelId::kRmsNorm:
      return Address(&RmsNorm);
    case KernelId::kAdd:
      return Address(&Add);
    case KernelId::kRoundRows:
      return Address(&RoundRows);
    case KernelId::kSiluMul:
      return Address(&SiluMul);
    case KernelId::kRope:
      return Address(&Rope<true, false>);
    case KernelId::kWriteKv:
      return Address(&Rope<false, true>);
    case KernelId::kRopeAndWriteKv:
      return Address(&Rope<true, true>);
    case KernelId::kZeroBlocks:
      return Address(&ZeroBlocks);
    case KernelId::kCopyBlocks:
      return Address(&CopyBlocks);
    case KernelId::kGemmFewRows:
      return Address(&GemmFewRows);
    case KernelId::kGemmManyRows:
      return Address(&GemmManyRows);
    case KernelId::kAttention32:
      return Address(&Attention<32>);
    case KernelId::kAttention64:
      return Address(&Attention<64>);
    case KernelId::kAttention96:
      return Address(&Attention<96>);
    case KernelId::kAttention128:
      return Address(&Attention<128>);
    case KernelId::kAttention256:
      return Address(&Attention<256>);
    case KernelId::kDecode32:
      return Address(&Decode<32, kDecodeHeads>);
    case KernelId::kDecode64:
      return Address(&Decode<64, kDecodeHeads>);
    case KernelId::kDecode96:
      return Address(&Decode<96, kDecodeHeads>);
    case KernelId::kDecode128:
      return Address(&Decode<128, kDecodeHeads>);
    case KernelId::kDecode256:
      return Address(&Decode<256, kDecodeHeads>);
    case KernelId::kDecodeWide32:
      return Address(&Decode<32, kDecodeWideHeads>);
    case KernelId::kDecodeWide64:
      return Address(&Decode<64, kDecodeWideHeads>);
    case KernelId::kDecodeWide96:
      return Address(&Decode<96, kDecodeWideHeads>);
    case KernelId::kDecodeWide128:
      return Address(&Decode<128, kDecodeWideHeads>);
    case KernelId::kDecodeWide256:
      return Address(&Decode<256, kDecodeWideHeads>);
    case KernelId::kMergeDecode:
      return Address(&MergeDecode);
    case KernelId::kSample:
      return Address(&Sample);
  }
  return nullptr;
}

}  // namespace pagoda::kernels::cuda
