#include "kernels/emulation/exact_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "base/bits.h"
#include "base/check.h"
#include "kernels/emulation/stack_sanitizer.h"

namespace pagoda::kernels::emulation {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::byte kNan{0xff};  // in bf16 and in f32

// A NaN in bf16 and in f32 that arithmetic does not give back: it comes out quiet.
std::byte Nobodys(const std::byte& place) {
  return reinterpret_cast<std::uintptr_t>(&place) % 2 == 0 ? std::byte{0xa0} : std::byte{0xff};
}

#if defined(PAGODA_TEST_CHECKS)
constexpr bool kBeginsAsNans = true;
#else
constexpr bool kBeginsAsNans = false;
#endif

}  // namespace

std::optional<ExactMemory> ExactMemory::Map(std::size_t bytes) {
  PAGODA_CHECK(bytes > 0);
  const std::size_t aligned = base::RoundUp(bytes, kAlignment);
  const std::size_t usable = base::RoundUp(aligned, kPageBytes);
  const std::size_t whole = usable + 2 * kPageBytes;
  void* const mapped =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return std::nullopt;
  auto* const begin = static_cast<std::byte*>(mapped);
  PAGODA_CHECK(mprotect(begin, kPageBytes, PROT_NONE) == 0);
  PAGODA_CHECK(mprotect(begin + whole - kPageBytes, kPageBytes, PROT_NONE) == 0);
  std::byte* const data = begin + kPageBytes + (usable - aligned);
  ExactMemory made({begin, whole}, {data, bytes});
  if (kBeginsAsNans) std::ranges::fill(made.bytes_, kNan);
  for (const std::span<std::byte> nobodys : {made.Before(), made.After()}) {
    for (std::byte& byte : nobodys) byte = Nobodys(byte);
  }
  made.SetForbidden(true);
  return made;
}

ExactMemory::~ExactMemory() {
  if (mapping_.empty()) return;
  SetForbidden(false);
  PAGODA_CHECK(munmap(mapping_.data(), mapping_.size()) == 0);
}

void ExactMemory::SetForbidden(bool is_forbidden) const {
  for (const std::span<std::byte> nobodys : {Before(), After()}) {
    is_forbidden ? Forbid(nobodys) : Allow(nobodys);
  }
}

std::span<std::byte> ExactMemory::Before() const {
  std::byte* const first = mapping_.data() + kPageBytes;
  return {first, bytes_.data()};
}

std::span<std::byte> ExactMemory::After() const {
  return {bytes_.data() + bytes_.size(), mapping_.data() + mapping_.size() - kPageBytes};
}

bool ExactMemory::IsOverrun() const {
  if (kForbids) return false;
  return !std::ranges::all_of(After(), [](const std::byte& byte) { return byte == Nobodys(byte); });
}

}  // namespace pagoda::kernels::emulation
