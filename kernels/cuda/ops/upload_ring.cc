#include "kernels/cuda/ops/upload_ring.h"

#include <cstring>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::int64_t kAlignment = 64;
// After each list: bytes that are no token, block, slot or position, so that a kernel that reads on
// does not find another list.
constexpr std::int64_t kTailBytes = 16;
constexpr int kNobodys = 0xff;

}  // namespace

absl::StatusOr<UploadRing> UploadRing::Create(Device& device, std::int64_t half_bytes) {
  auto memory = device.Allocate(2 * half_bytes);
  if (!memory.ok()) return memory.status();
  return UploadRing(device, *std::move(memory), half_bytes);
}

UploadRing::UploadRing(Device& device, DeviceMemory memory, std::int64_t half_bytes)
    : device_(&device),
      memory_(std::move(memory)),
      host_(static_cast<std::size_t>(2 * half_bytes)),
      half_bytes_(half_bytes) {}

const std::byte* UploadRing::PutBytes(std::span<const std::byte> bytes, Stream stream) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t taken = base::RoundUp(size + kTailBytes, kAlignment);
  PAGODA_CHECK_MSG(taken <= half_bytes_, "a list for one launch is too long for the upload ring");
  if (used_ + taken > half_bytes_) {
    left_[half_] = device_->Record(stream);
    half_ = 1 - half_;
    used_ = 0;
    // A failed device has nothing more to read; its error comes out of the next Await of the model.
    (void)device_->Await(left_[half_]);
  }
  const std::int64_t at = half_ * half_bytes_ + used_;
  used_ += taken;
  std::byte* const host = host_.data() + at;
  std::byte* const target = memory_.data() + at;
  if (size > 0) std::memcpy(host, bytes.data(), bytes.size());
  std::memset(host + size, kNobodys, static_cast<std::size_t>(taken - size));
  device_->Copy(target, host, taken, stream);
  return target;
}

}  // namespace pagoda::kernels::cuda
