#include "server/config/prefixes_file.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/config/section_file.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kMaxPrefixes = 64;

std::string_view KeyOf(const PublicPrefixSettings& prefix) {
  return prefix.is_system_message ? "system-file" : "text-file";
}

// Returns what is wrong, or nothing.
std::string OpenSection(std::string_view name, std::vector<PublicPrefixSettings>& prefixes) {
  if (std::ranges::find(prefixes, name, &PublicPrefixSettings::name) != prefixes.end()) {
    return absl::StrCat("prefix ", base::ToAbsl(name), " stands twice");
  }
  if (prefixes.size() == kMaxPrefixes) {
    return absl::StrCat("more than ", kMaxPrefixes, " prefixes");
  }
  prefixes.emplace_back().name = std::string(name);
  return {};
}

std::string Set(const SectionLine& line, PublicPrefixSettings& prefix) {
  const std::string where =
      absl::StrCat("prefix ", prefix.name, ", ",
                   IsSectionName(line.key) ? base::ToAbsl(line.key) : "unknown key");
  if (line.key == "tenant") {
    if (!IsSectionName(line.value)) return where + ": is no tenant's name";
    prefix.tenants.emplace_back(line.value);
    return {};
  }
  if (line.key != "text-file" && line.key != "system-file") {
    return where + ": unknown; known are text-file, system-file, tenant";
  }
  if (!prefix.path.empty()) {
    return absl::StrCat(where, ": one of text-file and system-file, once; ",
                        base::ToAbsl(KeyOf(prefix)), " stands above");
  }
  if (line.value.empty()) return where + ": names no file";
  prefix.path = std::string(line.value);
  prefix.is_system_message = line.key == "system-file";
  return {};
}

absl::Status CheckTenantNames(const ServerConfig& config, const PublicPrefixSettings& prefix) {
  for (const std::string& name : prefix.tenants) {
    const auto& known = config.tenant_settings;
    if (std::ranges::find(known, name, &TenantSettings::name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--public-prefixes ", config.public_prefixes, ": prefix ", prefix.name,
                     ", tenant: nobody is called ", name, " in --tenants"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<PublicPrefixSettings>> ParsePrefixes(std::string_view text,
                                                                std::string_view file) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<SectionLine> lines, SplitSections(text, file));
  std::vector<PublicPrefixSettings> prefixes;
  for (const SectionLine& line : lines) {
    const std::string wrong =
        line.section.empty() ? Set(line, prefixes.back()) : OpenSection(line.section, prefixes);
    if (wrong.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(base::ToAbsl(file), " line ", line.number, ": ", wrong));
  }
  for (const PublicPrefixSettings& prefix : prefixes) {
    if (!prefix.path.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(base::ToAbsl(file), ": prefix ", prefix.name,
                                                   " has neither text-file nor system-file"));
  }
  if (!prefixes.empty()) return prefixes;
  return absl::InvalidArgumentError(
      absl::StrCat(base::ToAbsl(file), ": no prefix; write a section [NAME] for each"));
}

absl::StatusOr<std::vector<PublicPrefixSettings>> LoadPrefixes(const ServerConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text,
                          ReadNamedFile("--public-prefixes", config.public_prefixes));
  PAGODA_ASSIGN_OR_RETURN(auto prefixes, ParsePrefixes(text, config.public_prefixes));
  const auto folder = std::filesystem::path(config.public_prefixes).parent_path();
  for (PublicPrefixSettings& prefix : prefixes) {
    PAGODA_RETURN_IF_ERROR(CheckTenantNames(config, prefix));
    const std::string what = absl::StrCat("--public-prefixes ", config.public_prefixes, ": prefix ",
                                          prefix.name, ", ", base::ToAbsl(KeyOf(prefix)));
    PAGODA_ASSIGN_OR_RETURN(prefix.text, ReadNamedFile(what, (folder / prefix.path).string()));
  }
  return prefixes;
}

}  // namespace pagoda::server
