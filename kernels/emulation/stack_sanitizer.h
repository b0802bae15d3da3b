#pragma once

#include <cstddef>
#include <span>

// What AddressSanitizer must be told about stacks that are switched by hand, and about memory that
// belongs to nobody; nothing in other builds.
#if defined(__SANITIZE_ADDRESS__)
#define PAGODA_STACK_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAGODA_STACK_SANITIZER 1
#endif
#endif
#if defined(PAGODA_STACK_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace pagoda::kernels::emulation {

#if defined(PAGODA_STACK_SANITIZER)
inline constexpr bool kForbids = true;
#else
inline constexpr bool kForbids = false;
#endif

// From now on nobody may touch it. In builds where kForbids.
inline void Forbid([[maybe_unused]] std::span<const std::byte> memory) {
#if defined(PAGODA_STACK_SANITIZER)
  __asan_poison_memory_region(memory.data(), memory.size());
#endif
}
// All may again.
inline void Allow([[maybe_unused]] std::span<const std::byte> memory) {
#if defined(PAGODA_STACK_SANITIZER)
  __asan_unpoison_memory_region(memory.data(), memory.size());
#endif
}

// The stack that a switch came from, as the sanitizer knows it.
struct StackRegion {
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

// Before a switch. `own` keeps what FinishSwitch needs on the way back; null: nobody will come
// back.
inline void StartSwitch([[maybe_unused]] StackRegion* own, [[maybe_unused]] const void* bottom,
                        [[maybe_unused]] std::size_t bytes) {
#if defined(PAGODA_STACK_SANITIZER)
  __sanitizer_start_switch_fiber(own == nullptr ? nullptr : &own->fake_stack, bottom, bytes);
#endif
}

// After a switch, on the stack that was reached; null on a fresh one. Returns where it came from.
inline StackRegion FinishSwitch([[maybe_unused]] const StackRegion* own) {
  StackRegion from;
#if defined(PAGODA_STACK_SANITIZER)
  __sanitizer_finish_switch_fiber(own == nullptr ? nullptr : own->fake_stack, &from.bottom,
                                  &from.bytes);
#endif
  return from;
}

// Nothing that once stood on this stack stands there now.
inline void ForgetStack(std::span<const std::byte> stack) { Allow(stack); }

}  // namespace pagoda::kernels::emulation
