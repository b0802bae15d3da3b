#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// What the code of an emulated kernel may ask of the emulator; kernels/cuda/primitives.cuh gives
// these the names and meanings that kernels use. Only on a thread of a running kernel.
namespace pagoda::kernels::emulation {

// A place in a kernel's source. Threads that meet must meet at the same one.
struct CallSite {
  const char* file = "";
  int line = 0;
  static constexpr CallSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

struct Index3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// Where this thread stands.
struct ThreadPlace {
  std::uint32_t thread = 0;  // in its CTA
  std::uint32_t num_threads = 0;
  Index3 cta;
  Index3 grid;
  std::byte* shared = nullptr;
  std::size_t shared_bytes = 0;
};
const ThreadPlace& Self();

// Waits for every thread of the CTA that has not returned.
void MeetCta(CallSite site);

// What one lane brings to, or takes from, a meeting of its warp.
struct LaneData {
  std::array<std::uint32_t, 12> words = {};
  const std::byte* address = nullptr;
};
struct WarpData {
  std::array<LaneData, 32> lanes;
};

enum class WarpOperation : std::uint8_t { kSync, kShuffle, kVote, kMatrixLoad, kMatrixMultiply };

// Waits for the lanes of `mask`; then `combine` runs once and each lane takes its part of `out`. A
// lane that comes with another operation, mask or site is a fault of the kernel. The reference
// lasts until this lane's next meeting.
using Combine = void (*)(const WarpData& in, WarpData& out);
const LaneData& MeetWarp(WarpOperation operation, std::uint32_t mask, CallSite site,
                         const LaneData& brought, Combine combine);

// 16 bytes from `source` to shared memory, or zeros where `source` is null, by the time that
// WaitForCopies says.
void CopyLater(std::byte* target, const std::byte* source, CallSite site);
void CommitCopies();
// Until at most `groups` of this thread's committed groups are under way.
void WaitForCopies(std::uint32_t groups);

// Ends the launch with an error; does not return. Also for a wrong address or alignment.
[[noreturn]] void Fault(const char* what, CallSite site);
// `count` bytes of this CTA's shared memory, `alignment` aligned; else a fault.
void CheckShared(const void* address, std::size_t count, std::size_t alignment, CallSite site);
// The same for 16 bytes, aligned, that a meeting reads for this thread.
void CheckSharedRead16(const void* address, CallSite site);

// The fault that the launch's schedule plants; 0: none.
std::uint8_t PlantedFault();

void CountMatrixLoad(std::uint32_t bank_conflicts);
void CountMatrixMultiply();

}  // namespace pagoda::kernels::emulation
