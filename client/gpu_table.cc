#include "client/gpu_table.h"

#include <algorithm>
#include <array>

namespace pagoda::client {
namespace {

constexpr std::array<Gpu, 15> kGpus = {{{"a10", 24, "sm_86"},
                                        {"a100-40gb", 40, "sm_80"},
                                        {"a100-80gb", 80, "sm_80"},
                                        {"a40", 48, "sm_86"},
                                        {"b200", 180, "sm_100"},
                                        {"h100-80gb", 80, "sm_90a"},
                                        {"h100-nvl", 94, "sm_90a"},
                                        {"h200", 141, "sm_90a"},
                                        {"l4", 24, "sm_89"},
                                        {"l40s", 48, "sm_89"},
                                        {"rtx-3090", 24, "sm_86"},
                                        {"rtx-4080", 16, "sm_89"},
                                        {"rtx-4090", 24, "sm_89"},
                                        {"rtx-5090", 32, "sm_120"},
                                        {"rtx-6000-ada", 48, "sm_89"}}};

}  // namespace

std::span<const Gpu> KnownGpus() { return kGpus; }

std::optional<Gpu> FindGpu(std::string_view name) {
  const auto* const found =
      std::find_if(kGpus.begin(), kGpus.end(), [name](const Gpu& gpu) { return gpu.name == name; });
  return found == kGpus.end() ? std::nullopt : std::optional(*found);
}

std::int64_t PlannableBytes(const Gpu& gpu) {
  constexpr double kGibibyte = 1 << 30;
  return static_cast<std::int64_t>(gpu.memory_gib * kGibibyte * kGpuMemoryShare);
}

}  // namespace pagoda::client
