#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// How ThreadSanitizer is brought to watch the threads of a kernel as if they ran at once; nothing
// in other builds. Each fiber is a thread to it, and a switch orders nothing: what orders is said
// here, where the emulator does what orders on hardware (a barrier, the start and the end of a
// launch). So two accesses without a barrier between them are a report, whatever order they came
// in. The emulator's own code is built without the sanitizer: its fibers share its state by design.
#if defined(PAGODA_WATCHES_RACES)
#include <sanitizer/tsan_interface.h>
extern "C" {
void __tsan_read16(void* address);
void __tsan_write16(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace pagoda::kernels::emulation {

#if defined(PAGODA_WATCHES_RACES)
inline constexpr bool kWatchesRaces = true;
#else
inline constexpr bool kWatchesRaces = false;
#endif

// A fiber as the sanitizer knows it; null in other builds. `old` ends, if there is one. What the
// caller did before is ordered before all that the fiber does.
inline void* RenewFiber([[maybe_unused]] void* old) {
#if defined(PAGODA_WATCHES_RACES)
  if (old != nullptr) __tsan_destroy_fiber(old);
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}
inline void EndFiber([[maybe_unused]] void* fiber) {
#if defined(PAGODA_WATCHES_RACES)
  if (fiber != nullptr) __tsan_destroy_fiber(fiber);
#endif
}
inline void* CurrentFiber() {
#if defined(PAGODA_WATCHES_RACES)
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}
// The last thing before a switch. Inlined always: a call of its own would begin on one fiber and
// end on the other.
[[gnu::always_inline]] inline void EnterFiber([[maybe_unused]] void* fiber) {
#if defined(PAGODA_WATCHES_RACES)
  __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

// All that this fiber did before TellOrder(place) is before what comes after a later
// TakeOrder(place).
inline void TellOrder([[maybe_unused]] const void* place) {
#if defined(PAGODA_WATCHES_RACES)
  __tsan_release(const_cast<void*>(place));
#endif
}
inline void TakeOrder([[maybe_unused]] const void* place) {
#if defined(PAGODA_WATCHES_RACES)
  __tsan_acquire(const_cast<void*>(place));
#endif
}

// Places for the barriers of resident CTAs. A CTA has two that take turns, since the slow may still
// leave one barrier when the fast come to the next; and not the last CTA's, whose barriers order
// nothing in it.
template <std::size_t kSlots>
class BarrierOrders {
 public:
  void Begin(std::size_t slot) { current_[slot] = num_begun_++ % kCtas * 2; }
  void Next(std::size_t slot) { current_[slot] ^= 1; }
  const void* Current(std::size_t slot) const { return &places_[current_[slot]]; }

 private:
  static constexpr std::size_t kCtas = kWatchesRaces ? 1024 : kSlots;

  std::array<std::uint64_t, kCtas * 2> places_ = {};
  std::array<std::size_t, kSlots> current_ = {};
  std::size_t num_begun_ = 0;
};

// The running fiber reads or writes 16 bytes, aligned, that code unknown to the sanitizer moves.
inline void NoteRead([[maybe_unused]] const void* address) {
#if defined(PAGODA_WATCHES_RACES)
  __tsan_read16(const_cast<void*>(address));
#endif
}
inline void NoteWrite([[maybe_unused]] void* address) {
#if defined(PAGODA_WATCHES_RACES)
  __tsan_write16(address);
#endif
}

// While it lives, what the fiber does is not looked at: it does the work of others.
class Unwatched {
 public:
  Unwatched() {
#if defined(PAGODA_WATCHES_RACES)
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  Unwatched(const Unwatched&) = delete;
  ~Unwatched() {
#if defined(PAGODA_WATCHES_RACES)
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  }
};

}  // namespace pagoda::kernels::emulation
