#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace pagoda::kernels::emulation {

// `count` pieces of memory of `bytes` each, an unreadable page before and after every one, mapped
// once: a step over an edge is a fault of the process, not a silent write. Pages are used only when
// touched. Owner: whoever made it; any thread.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t count, std::size_t bytes);
  GuardedMemory(const GuardedMemory&) = delete;
  ~GuardedMemory();

  // Piece i; it ends at a guard page, whatever `bytes` is.
  std::span<std::byte> Piece(std::size_t i) const {
    return {base_ + i * pitch_ + (pitch_ - kGuardBytes - bytes_), bytes_};
  }
  // Piece i mapped anew, zeros: to a sanitizer it is memory that nobody has used yet.
  void Renew(std::size_t i) const;

 private:
  static constexpr std::size_t kGuardBytes = 4096;

  std::size_t count_, bytes_, pitch_;
  std::byte* base_ = nullptr;  // after the first guard
};

}  // namespace pagoda::kernels::emulation
