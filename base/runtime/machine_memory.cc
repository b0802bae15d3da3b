#include "base/runtime/machine_memory.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/runtime/control_group.h"

namespace pagoda::base {
namespace {

std::optional<std::int64_t> MeminfoAvailable(const std::string& root) {
  const std::optional<std::string> text = ReadSmallFile(root + "/proc/meminfo");
  if (!text) return std::nullopt;
  constexpr std::string_view kKey = "MemAvailable:";
  const std::size_t at = text->find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digits = text->find_first_of("0123456789", at + kKey.size());
  if (digits == std::string::npos) return std::nullopt;
  const std::optional<std::int64_t> kib = LeadingNumber(text->substr(digits));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

// The tightest limit on the way from this process's control group to the root.
std::optional<std::int64_t> CgroupRoom(const std::string& root) {
  std::optional<std::int64_t> room;
  for (const std::string& folder : ControlGroupFolders(root)) {
    const auto most = ReadSmallFile(folder + "/memory.max");
    const auto now = ReadSmallFile(folder + "/memory.current");
    const auto limit = most ? LeadingNumber(*most) : std::nullopt;  // "max": none
    const auto used = now ? LeadingNumber(*now) : std::nullopt;
    if (!limit || !used) continue;
    const std::int64_t here = std::max<std::int64_t>(0, *limit - *used);
    room = std::min(room.value_or(std::numeric_limits<std::int64_t>::max()), here);
  }
  return room;
}

}  // namespace

absl::StatusOr<std::int64_t> AvailableMemory(const std::string& root) {
  const std::optional<std::int64_t> machine = MeminfoAvailable(root);
  if (!machine) {
    return absl::UnavailableError(
        "cannot read MemAvailable from /proc/meminfo; set --kv-cache-memory to a size");
  }
  return std::min(*machine, CgroupRoom(root).value_or(*machine));
}

}  // namespace pagoda::base
