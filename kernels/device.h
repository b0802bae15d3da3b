#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pagoda::kernels {

// A queue of work on a device. A plain handle; 0 is the one that every device has.
struct Stream {
  std::uint32_t index = 0;
};

// A point in a stream: everything enqueued before Record.
struct Event {
  std::uint64_t value = 0;
};

class Device;

// One kernel over a grid of CTAs. What a kernel id means, and what its arguments are, is between
// the device and the backend that launches: kernels/cuda/kernel_table.h.
struct KernelLaunch {
  std::uint16_t kernel = 0;
  std::uint32_t grid[3] = {1, 1, 1};
  int num_threads = 0;   // of a CTA
  int shared_bytes = 0;  // of a CTA
  // Plain data, taken by value when the call returns.
  std::span<const std::byte> arguments;
};

// Memory of a device, given back by the destructor. The device must outlive it, and no work on it
// may be pending then.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device* device, std::byte* data, std::int64_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory();

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Where ops run: memory, transfers, kernels, events. The seam for matrix products of a vendor
// library and for graphs (Gemm, Capture) joins here later. Owner: the Ops. Thread: the engine's; an
// error of enqueued work is returned by Await of an event after it, and by every later call.
class Device {
 public:
  virtual ~Device() = default;

  // True: memory is the process's own, so it may be read and written directly once an event has
  // been awaited.
  virtual bool is_host() const = 0;
  // Aligned to 256 bytes, anything in it (on the host zeros). ResourceExhausted with its size.
  virtual absl::StatusOr<DeviceMemory> Allocate(std::int64_t bytes) = 0;

  virtual void Copy(std::byte* target, const std::byte* source, std::int64_t bytes,
                    Stream stream) = 0;
  virtual void Fill(std::byte* target, std::byte value, std::int64_t bytes, Stream stream) = 0;

  // Requires: a device that has kernels.
  virtual void Launch(const KernelLaunch& launch, Stream stream) = 0;

  virtual Event Record(Stream stream) = 0;
  virtual bool IsDone(Event event) = 0;
  // Blocks until everything before the event is done.
  virtual absl::Status Await(Event event) = 0;

 private:
  friend class DeviceMemory;
  virtual void Release(std::byte* data, std::int64_t bytes) = 0;
};

inline DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) device_->Release(data_, bytes_);
}

// The process's memory; every transfer is done when the call returns.
std::unique_ptr<Device> MakeHostDevice();

}  // namespace pagoda::kernels
