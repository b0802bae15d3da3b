#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace pagoda::kernels::cuda {

// Lists that the host makes for one launch (tokens, slots, block tables), on their way to the
// device: written into a host copy and copied from there, so the caller's list need not live on.
// Two halves take turns; a half is written again only when the work that read it is done. Owner:
// CudaOps. Thread: the engine's.
class UploadRing {
 public:
  static absl::StatusOr<UploadRing> Create(Device& device, std::int64_t half_bytes);

  // Where the list lies on the device, for work enqueued on `stream` before half_bytes more have
  // been put; bytes of ones follow it. Requires: the list takes at most half_bytes less 16, in
  // whole 64.
  template <typename T>
  const T* Put(std::span<const T> list, Stream stream) {
    return reinterpret_cast<const T*>(PutBytes(std::as_bytes(list), stream));
  }

 private:
  UploadRing(Device& device, DeviceMemory memory, std::int64_t half_bytes);
  const std::byte* PutBytes(std::span<const std::byte> bytes, Stream stream);

  Device* device_;
  DeviceMemory memory_;
  std::vector<std::byte> host_;
  std::int64_t half_bytes_;
  std::int64_t half_ = 0;  // that is being filled
  std::int64_t used_ = 0;  // bytes of it
  Event left_[2];          // when the last writer left a half
};

}  // namespace pagoda::kernels::cuda
