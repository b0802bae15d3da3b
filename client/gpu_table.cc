#include "client/gpu_table.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/byte_size.h"
#include "base/strings.h"

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
  const auto* const found = std::find_if(kGpus.begin(), kGpus.end(), [name](const Gpu& gpu) {
    return absl::EqualsIgnoreCase(base::ToAbsl(gpu.name), base::ToAbsl(name));
  });
  return found == kGpus.end() ? std::nullopt : std::optional(*found);
}

std::int64_t PlannableBytes(const Gpu& gpu) {
  constexpr double kGibibyte = 1 << 30;
  return static_cast<std::int64_t>(gpu.memory_gib * kGibibyte * kGpuMemoryShare);
}

absl::StatusOr<PlanTarget> ParseTarget(const std::string& text) {
  const std::string name = absl::AsciiStrToLower(text);
  if (name == "cpu") return PlanTarget{.name = name};
  if (name == "gpu") return PlanTarget{.name = name, .is_gpu = true};
  constexpr int kPercent = static_cast<int>(100 * kGpuMemoryShare);
  if (const std::optional<Gpu> gpu = FindGpu(text)) {
    return PlanTarget{.name = std::string(gpu->name),
                      .is_gpu = true,
                      .memory_bytes = PlannableBytes(*gpu),
                      .memory_from = absl::StrCat(kPercent, " % of its ", gpu->memory_gib, " GiB")};
  }
  if (const auto bytes = base::ParseByteSize(text); bytes.ok()) {
    return PlanTarget{
        .name = absl::StrCat("GPU of ", base::FormatBytes(*bytes)),
        .is_gpu = true,
        .memory_bytes = static_cast<std::int64_t>(static_cast<double>(*bytes) * kGpuMemoryShare),
        .memory_from = absl::StrCat(kPercent, " % of its ", base::FormatBytes(*bytes))};
  }
  const std::string known =
      absl::StrJoin(kGpus, ", ", [](std::string* out, const Gpu& gpu) { out->append(gpu.name); });
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is no target; say cpu, the memory of a GPU, as 80GiB, or one of ", known));
}

}  // namespace pagoda::client
