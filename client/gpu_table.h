#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

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
std::optional<Gpu> FindGpu(std::string_view name);  // in either case
std::int64_t PlannableBytes(const Gpu& gpu);

// Where a model is to run, as `plan --target` names it.
struct PlanTarget {
  std::string name;
  bool is_gpu = false;
  // Of a GPU, what a plan counts on; none: to be given.
  std::optional<std::int64_t> memory_bytes = {};
  std::string memory_from = {};
};

// "cpu"; a GPU by its name; a GPU of a size, as "80GiB"; "gpu", whose memory is still to be said.
// InvalidArgument with what there is.
absl::StatusOr<PlanTarget> ParseTarget(const std::string& text);

}  // namespace pagoda::client
