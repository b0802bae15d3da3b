#pragma once

#include <cstddef>

// Changing stacks by hand: the one place beside kernels/cuda/primitives.cuh that holds assembly,
// for x86-64 with the System V convention. fiber_switch_boost.cc has the same by Boost.Context.
extern "C" {

// Saves the caller's registers on its stack and that stack's top in *saved; goes on where the stack
// `next` was saved. Returns when someone switches back.
void PagodaSwitchStack(void** saved, void* next);
}

namespace pagoda::kernels::emulation {

// The saved top of a fresh stack: switching to it calls entry, which must never return. Requires:
// `end` is the end of the stack's memory, aligned to 16.
void* FreshStack(std::byte* end, void (*entry)());

}  // namespace pagoda::kernels::emulation
