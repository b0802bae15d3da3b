#include "client/load/load_plan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/counter_rng.h"

namespace pagoda::client {
namespace {

// What a draw is for: no two uses share a random number.
enum class Stream : std::uint32_t {
  kInputLength,
  kOutputLength,
  kPrompt,
  kPrefix,
  kSeed,
  kArrival
};

std::uint64_t Bits(std::uint64_t seed, Stream stream, std::int64_t index, std::uint32_t position) {
  const auto i = static_cast<std::uint64_t>(index);
  const std::array<std::uint32_t, 4> word =
      base::Philox4x32({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                        position, static_cast<std::uint32_t>(stream)},
                       seed);
  return std::uint64_t{word[1]} << 32 | word[0];
}

// In [0, bound); the bias of at most bound / 2^64 is nothing.
std::uint64_t Below(std::uint64_t bits, std::uint64_t bound) { return bits % bound; }

std::int32_t Draw(const LengthRange& range, std::uint64_t bits) {
  const auto span = static_cast<std::uint64_t>(range.most - range.least) + 1;
  return range.least + static_cast<std::int32_t>(Below(bits, span));
}

}  // namespace

LoadPlan::LoadPlan(const LoadOptions& options, std::uint32_t vocabulary_size)
    : options_(options), vocabulary_size_(vocabulary_size) {
  PAGODA_CHECK(vocabulary_size_ >= 1);
}

PlannedRequest LoadPlan::Request(std::int64_t index) const {
  const std::uint64_t seed = options_.seed;
  PlannedRequest request{
      .index = index,
      .prompt = {},
      .output_tokens = Draw(options_.output, Bits(seed, Stream::kOutputLength, index, 0)),
      .seed = Bits(seed, Stream::kSeed, index, 0)};
  const std::int32_t own = Draw(options_.input, Bits(seed, Stream::kInputLength, index, 0));
  const auto add = [&](Stream stream, std::int64_t of, std::int32_t count) {
    for (std::int32_t i = 0; i < count; ++i) {
      request.prompt.push_back(static_cast<std::uint32_t>(
          Below(Bits(seed, stream, of, static_cast<std::uint32_t>(i)), vocabulary_size_)));
    }
  };
  request.prompt.reserve(static_cast<std::size_t>(options_.shared_prefix) +
                         static_cast<std::size_t>(own));
  add(Stream::kPrefix, 0, options_.shared_prefix);
  add(Stream::kPrompt, index, own);
  return request;
}

std::int64_t ArrivalTimes::NextOffsetNanos() {
  constexpr double kNanosPerSecond = 1e9;
  constexpr double kMostNanos = 9e18;
  // Uniform on the open interval (0, 1), 53 bits.
  const double uniform =
      (static_cast<double>(Bits(seed_, Stream::kArrival, index_++, 0) >> 11) + 0.5) * 0x1p-53;
  seconds_ += -std::log1p(-uniform) / rate_per_second_;
  return static_cast<std::int64_t>(std::min(seconds_ * kNanosPerSecond, kMostNanos));
}

}  // namespace pagoda::client
