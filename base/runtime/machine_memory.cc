#include "base/runtime/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace pagoda::base {
namespace {

std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> LeadingNumber(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> MeminfoAvailable(const std::string& root) {
  const std::optional<std::string> text = ReadText(root + "/proc/meminfo");
  if (!text) return std::nullopt;
  constexpr std::string_view kKey = "MemAvailable:";
  const std::size_t at = text->find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digits = text->find_first_of("0123456789", at + kKey.size());
  if (digits == std::string::npos) return std::nullopt;
  const std::optional<std::int64_t> kib = LeadingNumber(text->substr(digits));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

// The tightest limit on the way from this process's control group (version 2) to the root.
std::optional<std::int64_t> CgroupRoom(const std::string& root) {
  const std::optional<std::string> membership = ReadText(root + "/proc/self/cgroup");
  if (!membership || !membership->starts_with("0::")) return std::nullopt;
  std::string folder = membership->substr(3, membership->find('\n') - 3);
  std::optional<std::int64_t> room;
  for (;;) {
    const std::string base = absl::StrCat(root, "/sys/fs/cgroup", folder == "/" ? "" : folder);
    const auto most = ReadText(base + "/memory.max");
    const auto now = ReadText(base + "/memory.current");
    const auto limit = most ? LeadingNumber(*most) : std::nullopt;  // "max": none
    const auto used = now ? LeadingNumber(*now) : std::nullopt;
    if (limit && used) {
      const std::int64_t here = std::max<std::int64_t>(0, *limit - *used);
      room = std::min(room.value_or(std::numeric_limits<std::int64_t>::max()), here);
    }
    if (folder.empty() || folder == "/") return room;
    folder.resize(folder.find_last_of('/'));
  }
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
