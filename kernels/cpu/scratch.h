#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "kernels/device.h"

namespace pagoda::kernels::cpu {

// Memory of an op that lives from call to call and only grows, so that a running server soon
// allocates nothing. Contents do not survive a growth. Owner: the op. Thread: the engine's.
class Scratch {
 public:
  explicit Scratch(Device& device) : device_(device) {}

  // At least `bytes`, aligned to 4,096.
  std::byte* Get(std::int64_t bytes) {
    if (bytes > memory_.bytes()) {
      memory_ = DeviceMemory();
      auto grown = device_.Allocate(bytes + bytes / 2);
      PAGODA_CHECK_MSG(grown.ok(), "no memory for the scratch of an operation");
      memory_ = *std::move(grown);
    }
    return memory_.data();
  }

 private:
  Device& device_;
  DeviceMemory memory_;
};

}  // namespace pagoda::kernels::cpu
