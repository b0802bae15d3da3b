#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "base/counter_rng.h"

namespace pagoda::kernels::emulation {

// Which of the threads that can run goes next. Hardware promises none of these orders, so a correct
// kernel gives the same bits under all.
enum class Order : std::uint8_t {
  kForward,        // by index, round and round
  kReverse,        // the same, downwards
  kRandom,         // any, by seed
  kGreedy,         // one warp until all of it waits, then the next
  kGreedyReverse,  // the same, downwards
};

// When an asynchronous copy takes place. Until it is waited for, its target holds NaNs in the late
// mode: as on hardware, where nothing is known about it.
enum class CopyTime : std::uint8_t { kLate, kEarly };

struct Schedule {
  Order order = Order::kForward;
  CopyTime copies = CopyTime::kLate;
  std::uint64_t seed = 1;  // of kRandom
  int resident_ctas = 1;   // 1 or 2 that run interleaved
  // For tests of tests: a cuda::Mutation by number; 0: none.
  std::uint8_t planted_fault = 0;
};

// The threads that can run, as one bit each. Plain value, no memory of its own.
class ReadySet {
 public:
  static constexpr std::uint32_t kWords = 64;  // two CTAs of 32 warps

  void Clear() { words_ = {}; }
  void Add(std::uint32_t i) { words_[i / 32] |= 1u << (i % 32); }
  void AddWarp(std::uint32_t warp, std::uint32_t lanes) { words_[warp] |= lanes; }
  void Remove(std::uint32_t i) { words_[i / 32] &= ~(1u << (i % 32)); }

  // The least after `current`, or the least of all: round and round.
  std::optional<std::uint32_t> Above(std::uint32_t current) const {
    const std::uint32_t word = current / 32;
    const std::uint32_t after = current % 32 == 31 ? 0u : ~0u << (current % 32 + 1);
    if (const std::uint32_t here = words_[word] & after; here != 0) return Lowest(word, here);
    for (std::uint32_t i = 1; i <= kWords; ++i) {
      const std::uint32_t at = (word + i) % kWords;
      if (words_[at] != 0) return Lowest(at, words_[at]);
    }
    return std::nullopt;
  }
  // The greatest before `current`, or the greatest of all.
  std::optional<std::uint32_t> Below(std::uint32_t current) const {
    const std::uint32_t word = current / 32;
    const std::uint32_t before = (1u << (current % 32)) - 1;
    if (const std::uint32_t here = words_[word] & before; here != 0) return Highest(word, here);
    for (std::uint32_t i = 1; i <= kWords; ++i) {
      const std::uint32_t at = (word + kWords - i) % kWords;
      if (words_[at] != 0) return Highest(at, words_[at]);
    }
    return std::nullopt;
  }
  // The one with `number` (modulo how many there are) before it.
  std::optional<std::uint32_t> Nth(std::uint32_t number) const {
    std::uint32_t count = 0;
    for (const std::uint32_t word : words_)
      count += static_cast<std::uint32_t>(std::popcount(word));
    if (count == 0) return std::nullopt;
    number %= count;
    std::uint32_t at = 0;
    for (; number >= static_cast<std::uint32_t>(std::popcount(words_[at])); ++at) {
      number -= static_cast<std::uint32_t>(std::popcount(words_[at]));
    }
    std::uint32_t bits = words_[at];
    for (; number > 0; --number) bits &= bits - 1;
    return Lowest(at, bits);
  }
  std::optional<std::uint32_t> FirstOf(std::uint32_t warp) const {
    if (words_[warp] == 0) return std::nullopt;
    return Lowest(warp, words_[warp]);
  }
  std::optional<std::uint32_t> LastOf(std::uint32_t warp) const {
    if (words_[warp] == 0) return std::nullopt;
    return Highest(warp, words_[warp]);
  }

 private:
  static std::uint32_t Lowest(std::uint32_t word, std::uint32_t bits) {
    return word * 32 + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  static std::uint32_t Highest(std::uint32_t word, std::uint32_t bits) {
    return word * 32 + 31u - static_cast<std::uint32_t>(std::countl_zero(bits));
  }
  std::array<std::uint32_t, kWords> words_ = {};
};

// Chooses by one schedule. Thread: the emulator's.
class Picker {
 public:
  explicit Picker(const Schedule& schedule) : schedule_(schedule) {}

  std::optional<std::uint32_t> Next(const ReadySet& ready, std::uint32_t current) {
    switch (schedule_.order) {
      case Order::kForward:
        return ready.Above(current);
      case Order::kReverse:
        return ready.Below(current);
      case Order::kRandom:
        return ready.Nth(Random());
      case Order::kGreedy: {
        const auto same_warp = ready.FirstOf(current / 32);
        return same_warp ? same_warp : ready.Above(current);
      }
      case Order::kGreedyReverse: {
        const auto same_warp = ready.LastOf(current / 32);
        return same_warp ? same_warp : ready.Below(current);
      }
    }
    return std::nullopt;
  }
  // The one to begin with.
  std::optional<std::uint32_t> First(const ReadySet& ready) {
    const bool upwards = schedule_.order == Order::kForward || schedule_.order == Order::kGreedy;
    return Next(ready, upwards ? ReadySet::kWords * 32 - 1 : 0);
  }

 private:
  std::uint32_t Random() {
    if (left_ == 0) {
      words_ = base::Philox4x32({drawn_++, 0, 0, 0}, schedule_.seed);
      left_ = 4;
    }
    return words_[--left_];
  }

  const Schedule schedule_;
  std::array<std::uint32_t, 4> words_ = {};
  std::uint32_t drawn_ = 0;
  std::uint32_t left_ = 0;
};

}  // namespace pagoda::kernels::emulation
