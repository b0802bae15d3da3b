#include "base/runtime/machine_cores.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <thread>

#include "base/runtime/control_group.h"

namespace pagoda::base {
namespace {

// From "QUOTA PERIOD" in microseconds; none for "max PERIOD".
std::optional<std::int64_t> QuotaCores(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const std::optional<std::int64_t> quota = LeadingNumber(text);
  const std::optional<std::int64_t> period = LeadingNumber(text.substr(space + 1));
  if (!quota || !period || *period <= 0) return std::nullopt;
  return std::max<std::int64_t>(1, (*quota + *period - 1) / *period);
}

}  // namespace

int AvailableCores(const std::string& root) {
  std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (const std::string& folder : ControlGroupFolders(root)) {
    const std::optional<std::string> text = ReadSmallFile(folder + "/cpu.max");
    cores = std::min(cores, text ? QuotaCores(*text).value_or(cores) : cores);
  }
  return static_cast<int>(cores);
}

}  // namespace pagoda::base
