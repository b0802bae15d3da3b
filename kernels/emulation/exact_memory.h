#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace pagoda::kernels::emulation {

// Memory of exactly so many bytes, aligned as a GPU aligns it, that shows who leaves it: | page |
// NaNs | bytes | NaNs up to the alignment | page |. The pages cannot be touched; to
// AddressSanitizer neither can the NaNs, and elsewhere IsOverrun says whether any after them was
// written. In builds with test checks the bytes are NaNs at first, else zeros. Any thread.
class ExactMemory {
 public:
  static constexpr std::size_t kAlignment = 256;

  // Nothing when the system refuses. Requires: bytes > 0.
  static std::optional<ExactMemory> Map(std::size_t bytes);
  ExactMemory(ExactMemory&& other) noexcept
      : mapping_(std::exchange(other.mapping_, {})), bytes_(other.bytes_) {}
  ExactMemory& operator=(ExactMemory&&) = delete;
  ~ExactMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  // Whether AddressSanitizer forbids what is around the bytes: as it does at first.
  void SetForbidden(bool is_forbidden) const;
  // Whether something after the last byte was written. False under AddressSanitizer, which ends
  // the program where it happens.
  bool IsOverrun() const;

 private:
  ExactMemory(std::span<std::byte> mapping, std::span<std::byte> bytes)
      : mapping_(mapping), bytes_(bytes) {}
  std::span<std::byte> Before() const;
  std::span<std::byte> After() const;

  std::span<std::byte> mapping_;  // both pages included; empty: moved from
  std::span<std::byte> bytes_;
};

}  // namespace pagoda::kernels::emulation
