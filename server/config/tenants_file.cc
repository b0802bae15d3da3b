#include "server/config/tenants_file.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/config/section_file.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kMaxTenants = 256;
constexpr std::int64_t kMaxWeight = 1'000'000;
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 30;
constexpr std::int64_t kMaxRequests = 1 << 20;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

// Reads one file, line by line.
class TenantsReader {
 public:
  explicit TenantsReader(std::string_view file) : file_(file) {}

  absl::Status Read(std::string_view text) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<SectionLine> lines, SplitSections(text, file_));
    for (const SectionLine& line : lines) {
      line_ = line.number;
      PAGODA_RETURN_IF_ERROR(line.section.empty() ? Set(line.key, line.value)
                                                  : OpenSection(line.section));
    }
    if (tenants_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(base::ToAbsl(file_), ": no tenant; write a section [NAME] for each"));
    }
    return absl::OkStatus();
  }
  std::vector<TenantSettings> Take() { return std::move(tenants_); }

 private:
  absl::Status Refuse(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(base::ToAbsl(file_), " line ", line_, ": ", what));
  }
  absl::Status RefuseKey(std::string_view key, absl::string_view what) const {
    return Refuse(absl::StrCat("tenant ", tenants_.back().name, ", ", base::ToAbsl(key), what));
  }

  absl::Status OpenSection(std::string_view name) {
    const auto [first, is_new] = line_of_tenant_.emplace(name, line_);
    if (!is_new) {
      return Refuse(absl::StrCat("tenant ", base::ToAbsl(name), " stands twice, first on line ",
                                 first->second));
    }
    if (tenants_.size() == kMaxTenants) {
      return Refuse(absl::StrCat("more than ", kMaxTenants, " tenants"));
    }
    tenants_.emplace_back().name = std::string(name);
    given_.clear();
    return absl::OkStatus();
  }

  absl::Status Set(std::string_view key, std::string_view value) {
    TenantSettings& tenant = tenants_.back();
    if (key == "token-digest") return AddToken(value);
    if (key == "certificate-name") return AddCertificateName(value);
    if (!given_.insert(std::string(key)).second) return RefuseKey(key, ": given twice");
    if (key == "weight") return SetNumber(key, value, {1, kMaxWeight}, tenant.weight);
    if (key == "reserve-blocks") {
      return SetNumber(key, value, {0, kMaxBlocks}, tenant.reserve_blocks);
    }
    if (key == "max-running") return SetNumber(key, value, {1, kMaxRequests}, tenant.max_running);
    if (key == "max-queued-requests") {
      return SetNumber(key, value, {1, kMaxRequests}, tenant.max_queued_requests);
    }
    if (key == "max-queued-tokens") {
      return SetNumber(key, value, {1, kMaxTokens}, tenant.max_queued_tokens);
    }
    if (key != "isolated") return RefuseUnknown(key);
    if (value != "true" && value != "false") return RefuseKey(key, ": is true or false");
    tenant.isolated = value == "true";
    return absl::OkStatus();
  }

  absl::Status RefuseUnknown(std::string_view key) const {
    if (key == "token") {
      return RefuseKey(key,
                       ": tokens do not belong into files; write token-digest, which "
                       "pagoda-server --digest-token makes from a token");
    }
    // A key that is no word may be a secret on a line of its own.
    if (!IsSectionName(key)) return Refuse("unknown key");
    return Refuse(absl::StrCat(
        "unknown key ", base::ToAbsl(key),
        "; known are token-digest, certificate-name, weight, reserve-blocks, max-running, "
        "max-queued-requests, max-queued-tokens, isolated"));
  }

  struct Range {
    std::int64_t least, most;
  };
  template <typename Number>
  absl::Status SetNumber(std::string_view key, std::string_view value, Range allowed,
                         Number& number) const {
    std::int64_t read = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
    const bool is_number = error == std::errc() && end == value.data() + value.size();
    if (!is_number) return RefuseKey(key, ": is no whole number");
    if (read < allowed.least || read > allowed.most) {
      return RefuseKey(
          key, absl::StrCat(" = ", read, "; allowed is ", allowed.least, " to ", allowed.most));
    }
    number = static_cast<Number>(read);
    return absl::OkStatus();
  }

  absl::Status AddToken(std::string_view value) {
    const auto digest = base::DigestFromHex(value);
    if (!digest.has_value()) {
      return RefuseKey("token-digest",
                       ": is no SHA-256 in 64 hexadecimal digits; pagoda-server --digest-token "
                       "makes one from a token");
    }
    return AddCredential("token-digest", base::DigestToHex(*digest),
                         [&] { tenants_.back().token_digests.push_back(*digest); });
  }

  absl::Status AddCertificateName(std::string_view value) {
    if (value.empty() || value.size() > 256) {
      return RefuseKey("certificate-name",
                       absl::StrCat(": has ", value.size(), " bytes; allowed is 1 to 256"));
    }
    return AddCredential("certificate-name", std::string(value),
                         [&] { tenants_.back().certificate_names.emplace_back(value); });
  }

  // One credential, one tenant: else it would not say who calls.
  template <typename Add>
  absl::Status AddCredential(std::string_view key, const std::string& value, Add add) {
    const auto [first, is_new] =
        owner_.emplace(std::pair(std::string(key), value), std::pair(tenants_.back().name, line_));
    if (!is_new) {
      return RefuseKey(key, absl::StrCat(": the same one belongs to tenant ", first->second.first,
                                         " on line ", first->second.second));
    }
    add();
    return absl::OkStatus();
  }

  std::string_view file_;
  std::int64_t line_ = 0;
  std::vector<TenantSettings> tenants_;
  std::set<std::string> given_;  // keys of the open section
  std::map<std::string, std::int64_t, std::less<>> line_of_tenant_;
  std::map<std::pair<std::string, std::string>, std::pair<std::string, std::int64_t>> owner_;
};

struct Bound {
  std::string_view key, flag;
  std::int64_t total;
};

// Gives those that named no bound an even share of what the others left.
template <typename Number>
absl::Status ShareOut(std::vector<TenantSettings>& tenants, Number TenantSettings::* field,
                      const Bound& bound) {
  std::int64_t named = 0, num_open = 0;
  for (const TenantSettings& tenant : tenants) {
    named += tenant.*field;
    if (tenant.*field == 0) ++num_open;
  }
  if (named + num_open > bound.total) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tenants: ", base::ToAbsl(bound.key), " adds up to ", named, " over all tenants, and ",
        num_open, " tenants without one need at least 1 each; ", base::ToAbsl(bound.flag), " is ",
        bound.total, "; lower the one or raise the other"));
  }
  if (num_open == 0) return absl::OkStatus();
  const std::int64_t share = (bound.total - named) / num_open;
  for (TenantSettings& tenant : tenants) {
    if (tenant.*field == 0) tenant.*field = static_cast<Number>(share);
  }
  return absl::OkStatus();
}

absl::Status CheckCertificateNames(const std::vector<TenantSettings>& tenants,
                                   const ServerConfig& config) {
  if (!config.tls_client_ca.empty()) return absl::OkStatus();
  for (const TenantSettings& tenant : tenants) {
    if (tenant.certificate_names.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tenants: tenant ", tenant.name, " has a certificate-name (",
                     tenant.certificate_names.front(),
                     "), but no client certificate is asked for; give --tls-client-ca"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TenantSettings>> ParseTenants(std::string_view text,
                                                         std::string_view file) {
  TenantsReader reader(file);
  PAGODA_RETURN_IF_ERROR(reader.Read(text));
  return reader.Take();
}

absl::StatusOr<std::vector<TenantSettings>> LoadTenants(const ServerConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, ReadNamedFile("--tenants", config.tenants));
  PAGODA_ASSIGN_OR_RETURN(auto tenants, ParseTenants(text, config.tenants));
  PAGODA_RETURN_IF_ERROR(CheckCertificateNames(tenants, config));
  PAGODA_RETURN_IF_ERROR(
      ShareOut(tenants, &TenantSettings::max_queued_requests,
               {"max-queued-requests", "--max-queued-requests", config.max_queued_requests}));
  PAGODA_RETURN_IF_ERROR(
      ShareOut(tenants, &TenantSettings::max_queued_tokens,
               {"max-queued-tokens", "--max-queued-tokens", config.max_queued_tokens}));
  return tenants;
}

}  // namespace pagoda::server
