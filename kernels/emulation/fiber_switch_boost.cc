// The same two functions by Boost.Context, for machines whose stacks fiber_switch.cc cannot switch.
#include <boost/context/detail/fcontext.hpp>

#include "base/check.h"
#include "kernels/emulation/fiber_switch.h"

namespace context = boost::context::detail;

namespace {

using Entry = void (*)();

// Boost calls it with the stack that switched here; by then Pagoda's callers know only the stack
// they left, so each arrival writes where it came from to where that one asked it to be kept.
void Arrive(const context::transfer_t& from) { *static_cast<void**>(from.data) = from.fctx; }

// Runs up to its first switch at once, to learn what to call later.
void Begin(context::transfer_t maker) {
  const Entry entry = *static_cast<const Entry*>(maker.data);
  Arrive(context::jump_fcontext(maker.fctx, nullptr));
  entry();
}

}  // namespace

extern "C" void PagodaSwitchStack(void** saved, void* next) {
  Arrive(context::jump_fcontext(next, static_cast<void*>(saved)));
}

namespace pagoda::kernels::emulation {

void* FreshStack(std::byte* end, void (*entry)()) {
  PAGODA_CHECK(reinterpret_cast<std::uintptr_t>(end) % 16 == 0);
  // The size is for platforms that note a stack's limit; nothing reads it on ours.
  constexpr std::size_t kUnused = 4096;
  return context::jump_fcontext(context::make_fcontext(end, kUnused, Begin),
                                static_cast<void*>(&entry))
      .fctx;
}

}  // namespace pagoda::kernels::emulation
