#include "kernels/emulation/fiber_switch.h"

#include <cstdint>

#include "base/check.h"

#if !defined(__x86_64__)
#error "the emulator switches stacks on x86-64 only"
#endif

// The six registers that a call must keep, then the return address: what PagodaSwitchStack pushes
// and what FreshStack lays out.
asm(R"(
.text
.p2align 4
.globl PagodaSwitchStack
.type PagodaSwitchStack,@function
PagodaSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size PagodaSwitchStack,.-PagodaSwitchStack
)");

namespace pagoda::kernels::emulation {
namespace {

constexpr std::size_t kKeptRegisters = 6;

}  // namespace

void* FreshStack(std::byte* end, void (*entry)()) {
  PAGODA_CHECK(reinterpret_cast<std::uintptr_t>(end) % 16 == 0);
  // The null above the entry is its return address, so that a debugger's walk ends there; with it
  // the stack stands as the convention wants it at a function's first instruction.
  auto* top = reinterpret_cast<void**>(end);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (std::size_t i = 0; i < kKeptRegisters; ++i) *--top = nullptr;
  return static_cast<void*>(top);
}

}  // namespace pagoda::kernels::emulation
