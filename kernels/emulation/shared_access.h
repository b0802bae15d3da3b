#pragma once

#include <cstddef>

#include "kernels/emulation/thread.h"

namespace pagoda::kernels::emulation {

// A plain access of this thread to its CTA's shared memory, aligned to its `count` bytes; else a
// fault. Kept where a BankWatch lives. Only on a thread of a running kernel.
void NoteShared(const void* address, std::size_t count, CallSite site);

}  // namespace pagoda::kernels::emulation
