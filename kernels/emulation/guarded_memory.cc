// | guard | piece 0 | guard | piece 1 | guard | ...
#include "kernels/emulation/guarded_memory.h"

#include <sys/mman.h>

#include "base/bits.h"
#include "base/check.h"

namespace pagoda::kernels::emulation {

GuardedMemory::GuardedMemory(std::size_t count, std::size_t bytes)
    : count_(count), bytes_(bytes), pitch_(base::RoundUp(bytes, kGuardBytes) + kGuardBytes) {
  void* const data = mmap(nullptr, kGuardBytes + count_ * pitch_, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PAGODA_CHECK_MSG(data != MAP_FAILED, "no address space for the emulator's stacks");
  base_ = static_cast<std::byte*>(data) + kGuardBytes;
  for (std::size_t i = 0; i < count_; ++i) {
    PAGODA_CHECK(mprotect(base_ + i * pitch_, pitch_ - kGuardBytes, PROT_READ | PROT_WRITE) == 0);
  }
}

void GuardedMemory::Renew(std::size_t i) const {
  std::byte* const piece = base_ + i * pitch_;
  PAGODA_CHECK(mmap(piece, pitch_ - kGuardBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == piece);
}

GuardedMemory::~GuardedMemory() {
  PAGODA_CHECK(munmap(base_ - kGuardBytes, kGuardBytes + count_ * pitch_) == 0);
}

}  // namespace pagoda::kernels::emulation
