#include "kernels/emulation/emulated_kernels.h"

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/decode.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/kv_kernels.cuh"
#include "kernels/cuda/row_kernels.cuh"
#include "kernels/cuda/sample.cuh"

namespace pagoda::kernels::emulation {
namespace {

template <typename Function>
struct ArgumentsOf;
template <typename Arguments>
struct ArgumentsOf<void (*)(Arguments)> {
  using Type = Arguments;
};

template <auto kKernel>
void Call(const void* arguments) {
  using Arguments = typename ArgumentsOf<decltype(kKernel)>::Type;
  kKernel(*static_cast<const Arguments*>(arguments));
}

// In the order of the table.
constexpr EmulatedKernel kFunctions[cuda::kNumKernels] = {
    Call<&cuda::Embed>,
    Call<&cuda::RmsNorm>,
    Call<&cuda::Add>,
    Call<&cuda::RoundRows>,
    Call<&cuda::SiluMul>,
    Call<&cuda::Rope<true, false>>,
    Call<&cuda::Rope<false, true>>,
    Call<&cuda::Rope<true, true>>,
    Call<&cuda::ZeroBlocks>,
    Call<&cuda::CopyBlocks>,
    Call<&cuda::GemmFewRows>,
    Call<&cuda::GemmManyRows>,
    Call<&cuda::Attention<32>>,
    Call<&cuda::Attention<64>>,
    Call<&cuda::Attention<96>>,
    Call<&cuda::Attention<128>>,
    Call<&cuda::Attention<256>>,
    Call<&cuda::Decode<32, cuda::kDecodeHeads>>,
    Call<&cuda::Decode<64, cuda::kDecodeHeads>>,
    Call<&cuda::Decode<96, cuda::kDecodeHeads>>,
    Call<&cuda::Decode<128, cuda::kDecodeHeads>>,
    Call<&cuda::Decode<256, cuda::kDecodeHeads>>,
    Call<&cuda::Decode<32, cuda::kDecodeWideHeads>>,
    Call<&cuda::Decode<64, cuda::kDecodeWideHeads>>,
    Call<&cuda::Decode<96, cuda::kDecodeWideHeads>>,
    Call<&cuda::Decode<128, cuda::kDecodeWideHeads>>,
    Call<&cuda::Decode<256, cuda::kDecodeWideHeads>>,
    Call<&cuda::MergeDecode>,
    Call<&cuda::Sample>,
};

}  // namespace

EmulatedKernel KernelOf(cuda::KernelId id) { return kFunctions[static_cast<std::size_t>(id)]; }

}  // namespace pagoda::kernels::emulation
