#include "base/byte_size.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace pagoda::base {
namespace {

// Above this a double no longer holds every byte count.
constexpr double kMaxBytes = 0x1p52;

constexpr std::array<std::pair<std::string_view, double>, 14> kUnits = {{{"", 1.0},
                                                                         {"B", 1.0},
                                                                         {"K", 0x1p10},
                                                                         {"KiB", 0x1p10},
                                                                         {"KB", 1e3},
                                                                         {"M", 0x1p20},
                                                                         {"MiB", 0x1p20},
                                                                         {"MB", 1e6},
                                                                         {"G", 0x1p30},
                                                                         {"GiB", 0x1p30},
                                                                         {"GB", 1e9},
                                                                         {"T", 0x1p40},
                                                                         {"TiB", 0x1p40},
                                                                         {"TB", 1e12}}};

constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};

// In the largest unit of which there is at least one; the unit's place in kNames.
std::pair<double, std::size_t> InUnits(std::int64_t bytes) {
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  return {value, unit};
}

std::string Written(double value, std::size_t unit) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kNames[unit]);
  return text.data();
}

}  // namespace

absl::StatusOr<std::int64_t> ParseByteSize(std::string_view text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, factor] : kUnits) {
    if (error != std::errc() || unit != name) continue;
    const double bytes = number * factor;
    if (!(bytes >= 0.0 && bytes <= kMaxBytes)) break;
    return static_cast<std::int64_t>(std::floor(bytes));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToAbsl(text), "' is no size; write a number and a unit, as 512MiB or 2G"));
}

std::string FormatBytes(std::int64_t bytes) {
  const auto [value, unit] = InUnits(bytes);
  return Written(value, unit);
}

std::string FormatBytesUp(std::int64_t bytes) {
  constexpr double kTenths = 10.0;
  const auto [value, unit] = InUnits(bytes);
  return Written(std::ceil(value * kTenths) / kTenths, unit);
}

}  // namespace pagoda::base
