#include "server/core/auth/credentials.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/field_error.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

constexpr std::string_view kScheme = "bearer";

bool IsBearer(std::string_view text) {
  return std::ranges::equal(text, kScheme, [](char c, char wanted) {
    return (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) == wanted;
  });
}

absl::Status Malformed(absl::string_view what) {
  return base::WithReason(absl::UnauthenticatedError(what), reason::kMalformedCredential);
}

}  // namespace

absl::StatusOr<std::string_view> BearerToken(std::string_view authorization) {
  const std::size_t space = authorization.find(' ');
  if (!IsBearer(authorization.substr(0, space))) {
    return Malformed("the scheme of `authorization` is not Bearer; send `Bearer TOKEN`");
  }
  const std::size_t begin = authorization.find_first_not_of(' ', kScheme.size());
  const std::string_view token =
      begin == std::string_view::npos ? std::string_view() : authorization.substr(begin);
  if (!base::IsTokenText(token)) {
    return Malformed("`authorization` holds no well-formed token; send `Bearer TOKEN`");
  }
  return token;
}

CredentialTable::CredentialTable(std::vector<TenantCredentials> tenants)
    : tenants_(std::move(tenants)) {
  for (std::uint32_t i = 0; i < tenants_.size(); ++i) {
    for (const base::TokenDigest& digest : tenants_[i].token_digests) {
      entries_.push_back({digest, base::TenantId{i}});
    }
  }
}

std::optional<base::TenantId> CredentialTable::TenantOfToken(std::string_view token) const {
  const base::TokenDigest digest = base::DigestOfToken(token);
  // Arithmetic instead of branches: no early end, no jump that depends on which one fits.
  std::uint32_t found = 0, num_found = 0;
  for (const Entry& entry : entries_) {
    const std::uint32_t fits = base::SameDigest(entry.digest, digest) ? 1 : 0;
    found |= (0u - fits) & entry.tenant.value();
    num_found += fits;
  }
  PAGODA_CHECK(num_found <= 1);
  if (num_found == 0) return std::nullopt;
  return base::TenantId{found};
}

std::optional<base::TenantId> CredentialTable::TenantOfCertificate(
    const std::vector<std::string_view>& names) const {
  std::optional<base::TenantId> found;
  for (std::uint32_t i = 0; i < tenants_.size(); ++i) {
    const bool fits = std::ranges::any_of(tenants_[i].certificate_names, [&](const auto& known) {
      return std::ranges::find(names, std::string_view(known)) != names.end();
    });
    if (!fits) continue;
    if (found.has_value()) return std::nullopt;
    found = base::TenantId{i};
  }
  return found;
}

}  // namespace pagoda::server
