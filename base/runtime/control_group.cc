#include "base/runtime/control_group.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace pagoda::base {

std::vector<std::string> ControlGroupFolders(const std::string& root) {
  const std::optional<std::string> membership = ReadSmallFile(root + "/proc/self/cgroup");
  if (!membership || !membership->starts_with("0::")) return {};
  std::string group = membership->substr(3, membership->find('\n') - 3);
  std::vector<std::string> folders;
  for (;;) {
    folders.push_back(absl::StrCat(root, "/sys/fs/cgroup", group == "/" ? "" : group));
    if (group.empty() || group == "/") return folders;
    group.resize(group.find_last_of('/'));
  }
}

std::optional<std::string> ReadSmallFile(const std::string& path) {
  const std::ifstream file(path);
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

}  // namespace pagoda::base
