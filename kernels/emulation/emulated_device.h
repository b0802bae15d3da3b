#pragma once

#include <memory>

#include "kernels/device.h"
#include "kernels/emulation/emulator.h"
#include "kernels/emulation/schedule.h"

namespace pagoda::kernels::emulation {

struct EmulatedDeviceOptions {
  Schedule schedule = {};
  // Shared memory of a CTA; the default is what the smallest supported GPUs have.
  int max_shared_bytes = 99 * 1024;
};

// A CUDA device played by the host: the kernels of kernels/cuda, compiled for it, under the
// emulator. Memory is exact (exact_memory.h). Work is kept until an event after it is asked about:
// what is changed or freed too early is seen so. A wrong launch or a fault of a kernel is
// an error of the device: nothing runs after it. Owner: the Ops. Thread: the engine's.
class EmulatedDevice : public Device {
 public:
  // Of everything run until now.
  virtual const Counters& counters() const = 0;
  // For launches from now on.
  virtual void SetSchedule(const Schedule& schedule) = 0;
};

std::unique_ptr<EmulatedDevice> MakeEmulatedDevice(const EmulatedDeviceOptions& options);

}  // namespace pagoda::kernels::emulation
