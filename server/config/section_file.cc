#include "server/config/section_file.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The value of `key = value`: quoted, or bare up to a comment. None when it is neither.
std::optional<std::string_view> ValueOf(std::string_view text) {
  if (!text.starts_with('"')) return Trim(text.substr(0, text.find('#')));
  const std::size_t close = text.find('"', 1);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view rest = Trim(text.substr(close + 1));
  if (!rest.empty() && !rest.starts_with('#')) return std::nullopt;
  return text.substr(1, close - 1);
}

// The name between the brackets; none when it is not one.
std::optional<std::string_view> SectionOf(std::string_view line) {
  const std::size_t close = line.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view rest = Trim(line.substr(close + 1));
  const std::string_view name = line.substr(1, close - 1);
  if ((!rest.empty() && !rest.starts_with('#')) || !IsSectionName(name)) return std::nullopt;
  return name;
}

absl::StatusOr<SectionLine> Split(std::string_view line, bool in_section) {
  if (line.starts_with('[')) {
    const auto name = SectionOf(line);
    if (name.has_value()) return SectionLine{.section = *name};
    return absl::InvalidArgumentError(absl::StrCat("a section is [NAME], with 1 to ",
                                                   kMaxSectionNameBytes,
                                                   " letters, digits, '-', '_' and '.'"));
  }
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return absl::InvalidArgumentError("neither a section [NAME] nor `key = value`");
  }
  if (!in_section) {
    return absl::InvalidArgumentError("a key before the first section [NAME]");
  }
  const auto value = ValueOf(Trim(line.substr(equals + 1)));
  if (!value.has_value()) {
    return absl::InvalidArgumentError("a value whose quotes do not match");
  }
  return SectionLine{.key = Trim(line.substr(0, equals)), .value = *value};
}

}  // namespace

bool IsSectionName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxSectionNameBytes &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

absl::StatusOr<std::vector<SectionLine>> SplitSections(std::string_view text,
                                                       std::string_view file) {
  std::vector<SectionLine> lines;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    absl::StatusOr<SectionLine> split = Split(line, !lines.empty());
    if (!split.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(base::ToAbsl(file), " line ", number, ": ", split.status().message()));
    }
    split->number = number;
    lines.push_back(*split);
  }
  return lines;
}

absl::StatusOr<std::string> ReadNamedFile(std::string_view flag, const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  for (char c = 0; stream.get(c) && text.size() <= kMaxFileBytes;) text += c;
  if (!text.empty() && text.size() <= kMaxFileBytes) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(base::ToAbsl(flag), " ", path,
                   text.empty() ? ": cannot be read or is empty" : ": is larger than 1 MiB"));
}

}  // namespace pagoda::server
