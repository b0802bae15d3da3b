#include "model/kv_storage.h"

#include <algorithm>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace pagoda::model {
namespace {

#if defined(PAGODA_TEST_CHECKS)
constexpr std::int64_t kGapBytes = 64;
#else
constexpr std::int64_t kGapBytes = 0;
#endif
constexpr std::byte kPoison{0xff};  // a NaN in bf16 and in f32

bool IsPoison(const std::byte* begin, std::int64_t count) {
  return std::all_of(begin, begin + count, [](std::byte byte) { return byte == kPoison; });
}

absl::StatusOr<kernels::DeviceMemory> AllocatePool(kernels::Device& device, std::int64_t stride,
                                                   std::int32_t num_blocks) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(stride, std::int64_t{num_blocks}, &bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(num_blocks, " KV blocks of ", stride, " bytes exceed 64 bits"));
  }
  auto memory = device.Allocate(bytes);
  if (!memory.ok()) {
    return absl::Status(memory.status().code(),
                        absl::StrCat("KV pool of ", num_blocks, " blocks of ", stride,
                                     " bytes: ", memory.status().message()));
  }
  if (kGapBytes == 0) return memory;
  device.Fill(memory->data(), kPoison, bytes, kernels::Stream{});
  absl::Status filled = device.Await(device.Record(kernels::Stream{}));
  if (!filled.ok()) return filled;
  return memory;
}

void CheckGapsOf(const kernels::KvView& view) {
  const std::byte* const base = view.key.base;
  PAGODA_CHECK_MSG(IsPoison(base, view.extent_bytes), "the null block was written");
  for (std::int64_t block = 0; block < view.num_blocks; ++block) {
    const std::byte* const gap = base + block * view.key.block_stride + view.extent_bytes;
    PAGODA_CHECK_MSG(IsPoison(gap, kGapBytes), "the gap after a block was written");
  }
}

}  // namespace

absl::StatusOr<KvStorage> KvStorage::Create(kernels::Device& device,
                                            const base::KvGeometry& geometry,
                                            std::int32_t num_blocks, kernels::KeyOrder key_order) {
  PAGODA_CHECK(num_blocks >= 1);
  KvStorage storage;
  storage.num_blocks_ = num_blocks;
  for (std::size_t i = 0; i < geometry.groups.size(); ++i) {
    const std::int64_t stride = geometry.BytesPerBlock(i) + kGapBytes;
    auto memory = AllocatePool(device, stride, num_blocks);
    if (!memory.ok()) return memory.status();
    kernels::KvView view = kernels::BlockMajorKvView(memory->data(), geometry.groups[i],
                                                     geometry.block_size, num_blocks, key_order);
    view.key.block_stride = stride;
    view.value.block_stride = stride;
    storage.views_.push_back(view);
    storage.memories_.push_back(*std::move(memory));
  }
  return storage;
}

void KvStorage::CheckGaps() const {
  if (kGapBytes == 0) return;
  for (const kernels::KvView& view : views_) CheckGapsOf(view);
}

}  // namespace pagoda::model
