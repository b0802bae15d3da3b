#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pagoda::client {

// A GPU that a plan may name.
struct Gpu {
  std::string_view name;
  std::int32_t memory_gib = 0;  // as it is sold
  std::string_view architecture;
};

// The share of its memory that a plan counts on: a driver, its context and error correction take
// the rest.
inline constexpr double kGpuMemoryShare = 0.9;

std::span<const Gpu> KnownGpus();
std::optional<Gpu> FindGpu(std::string_view name);
std::int64_t PlannableBytes(const Gpu& gpu);

}  // namespace pagoda::client
