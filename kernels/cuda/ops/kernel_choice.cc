#include "kernels/cuda/ops/kernel_choice.h"

#include <bit>
#include <utility>

#include "base/check.h"
#include "kernels/kv_support.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::int64_t kCopyBytes = 16;  // of one asynchronous copy

KvPlaneArguments PlaneOf(const KvPlane& plane) {
  return {.base = reinterpret_cast<unsigned char*>(plane.base),
          .block_stride = plane.block_stride,
          .layer_stride = plane.layer_stride,
          .head_stride = plane.head_stride,
          .token_stride = plane.token_stride};
}

// Every 16 bytes of a token's head can be copied as one.
void CheckPlane(const KvPlane& plane) {
  PAGODA_CHECK(reinterpret_cast<std::uintptr_t>(plane.base) % kCopyBytes == 0);
  for (const std::int64_t stride :
       {plane.block_stride, plane.layer_stride, plane.head_stride, plane.token_stride}) {
    PAGODA_CHECK(stride % kCopyBytes == 0);
  }
}

}  // namespace

Capabilities MakeCapabilities() {
  KvSupport kv = KvSupportOf(PackLayout::kBf16Rows);
  Capabilities made;
  made.backend = std::move(kv.backend);
  made.numerics_id = "cuda-mma16-1";
  made.kv_types = std::move(kv.types);
  made.head_sizes = std::move(kv.head_sizes);
  made.block_sizes = std::move(kv.block_sizes);
  for (const ElementType format : kAllElementTypes) {
    made.weights.push_back({format, ActivationType::kBf16});
    made.embeddings.push_back(format);
  }
  made.pack_layout = PackLayout::kBf16Rows;
  made.key_order = KeyOrder::kTokenMajor;
  return made;
}

KvArguments ArgumentsOf(const KvView& kv) {
  PAGODA_CHECK(kv.type == base::KvType::kBf16);
  PAGODA_CHECK(kv.key_order == KeyOrder::kTokenMajor);
  PAGODA_CHECK(std::has_single_bit(static_cast<std::uint32_t>(kv.block_size)));
  PAGODA_CHECK(kv.head_size % 8 == 0);
  CheckPlane(kv.key);
  CheckPlane(kv.value);
  return {.key = PlaneOf(kv.key),
          .value = PlaneOf(kv.value),
          .block_shift = std::countr_zero(static_cast<std::uint32_t>(kv.block_size))};
}

KernelId AttentionKernelOf(std::int32_t head_size) {
  switch (head_size) {
    case 32:
      return KernelId::kAttention32;
    case 64:
      return KernelId::kAttention64;
    case 96:
      return KernelId::kAttention96;
    case 128:
      return KernelId::kAttention128;
    default:
      PAGODA_CHECK(head_size == 256);
      return KernelId::kAttention256;
  }
}

KernelId DecodeKernelOf(std::int32_t head_size, bool wide) {
  switch (head_size) {
    case 32:
      return wide ? KernelId::kDecodeWide32 : KernelId::kDecode32;
    case 64:
      return wide ? KernelId::kDecodeWide64 : KernelId::kDecode64;
    case 96:
      return wide ? KernelId::kDecodeWide96 : KernelId::kDecode96;
    case 128:
      return wide ? KernelId::kDecodeWide128 : KernelId::kDecode128;
    default:
      PAGODA_CHECK(head_size == 256);
      return wide ? KernelId::kDecodeWide256 : KernelId::kDecode256;
  }
}

}  // namespace pagoda::kernels::cuda
