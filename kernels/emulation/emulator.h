#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/emulation/schedule.h"
#include "kernels/emulation/thread.h"

namespace pagoda::kernels::emulation {

// A kernel compiled for the host.
using EmulatedKernel = void (*)(const void* arguments);

struct EmulatedLaunch {
  EmulatedKernel kernel = nullptr;
  const void* arguments = nullptr;
  Index3 grid;
  std::uint32_t num_threads = 0;
  std::size_t shared_bytes = 0;
  const char* name = "";  // for messages
};

// What launches did, summed since the last reset.
struct Counters {
  std::uint64_t ctas = 0;
  std::uint64_t switches = 0;
  std::uint64_t barriers = 0;  // meetings of a CTA
  std::uint64_t warp_meetings = 0;
  std::uint64_t matrix_multiplies = 0;
  std::uint64_t matrix_loads = 0;
  std::uint64_t bank_conflicts = 0;  // of matrix loads: further passes that a load needed
  std::uint64_t async_bytes = 0;     // read by asynchronous copies; zero fills read nothing
};

// Runs CUDA kernels on the host, a fiber per thread, one fiber at a time; so everything that a
// kernel does is in a definite order, and the schedule can be as hostile as hardware may be.
// What it finds: threads that meet at different places or never (with a list of who waits where),
// wrong shared addresses, copies under way at the end; and, since shared memory and the targets of
// copies hold NaNs until written, most missing waits. Built with the thread sanitizer also races
// whose outcome is the same in all orders (race_watch.h). What it cannot find: anything about
// speed. All memory is mapped at the start. Owner: the emulated device. Thread: one at a time.
class Emulator {
 public:
  static constexpr std::uint32_t kMaxThreads = 1024;
  static constexpr std::size_t kMaxSharedBytes = 227 * 1024;

  Emulator();
  ~Emulator();

  // The whole grid. Internal, with the kernel's name, for a fault of the kernel: nothing more of
  // the grid runs then. Requires: arguments stay until it returns.
  absl::Status Run(const EmulatedLaunch& launch, const Schedule& schedule);

  const Counters& counters() const;
  void ResetCounters();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::kernels::emulation
