#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pagoda::simulation {

// A 64-bit mixer (the finaliser of SplitMix64 over both).
constexpr std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// What a scenario is thrown with: a seed, or the bytes of a fuzzer and, when they are spent, a seed
// made of them. Equal beginnings give equal throws on every machine.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : seed_(Mix(seed, 1)) {}
  explicit Chance(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    for (const std::uint8_t byte : bytes) seed_ = Mix(seed_, byte);
  }

  // 0 ... sides - 1
  int Roll(int sides) {
    const auto limit = static_cast<std::uint64_t>(sides);
    if (bytes_.empty()) return static_cast<int>(Mix(seed_, ++count_) % limit);
    std::uint64_t value = TakeByte();
    if (sides > 256) value = value << 8 | TakeByte();
    return static_cast<int>(value % limit);
  }
  bool OneIn(int times) { return Roll(times) == 0; }
  // A seed of its own, for what is not worth a byte each.
  std::uint64_t Seed() { return Mix(seed_, static_cast<std::uint64_t>(Roll(1 << 16))); }

 private:
  std::uint64_t TakeByte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  std::span<const std::uint8_t> bytes_;
  std::uint64_t seed_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace pagoda::simulation
