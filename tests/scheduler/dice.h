#pragma once

#include <cstdint>

namespace pagoda::scheduler::testing {

// Chance for tests: a seed gives the same run on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t Next() { return Scramble(Scramble(seed_) + ++count_ * 0x9E3779B97F4A7C15u); }
  // 0 ... sides - 1
  int Roll(int sides) { return static_cast<int>(Next() % static_cast<std::uint64_t>(sides)); }
  bool OneIn(int times) { return Roll(times) == 0; }

 private:
  static std::uint64_t Scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace pagoda::scheduler::testing
