#include "server/core/auth/authenticator.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

absl::Status Unknown() {
  return base::WithReason(
      absl::UnauthenticatedError("the credential belongs to no tenant of this server"),
      reason::kUnknownCredential);
}

}  // namespace

Authenticator::Authenticator(Mode mode, const scheduler::NamespaceMinter::Secret& secret,
                             std::vector<TenantCredentials> tenants)
    : mode_(mode),
      minter_(secret),
      table_(std::make_shared<const CredentialTable>(std::move(tenants))) {
  PAGODA_CHECK((mode_ == Mode::kTenants) == !table()->tenants().empty());
}

std::shared_ptr<const CredentialTable> Authenticator::table() const {
  base::MutexLock lock(mutex_);
  return table_;
}

absl::StatusOr<Principal> Authenticator::Authenticate(const PresentedCredentials& presented) const {
  if (mode_ != Mode::kTenants) return ServersOwn();
  const auto known = table();
  const auto by_certificate = known->TenantOfCertificate(presented.certificate_names);
  std::optional<base::TenantId> tenant = by_certificate;
  if (!presented.authorization.empty()) {
    if (presented.authorization.size() > 1) {
      return base::WithReason(absl::UnauthenticatedError("`authorization` was sent twice"),
                              reason::kMalformedCredential);
    }
    PAGODA_ASSIGN_OR_RETURN(const std::string_view token,
                            BearerToken(presented.authorization.front()));
    tenant = known->TenantOfToken(token);
    if (!tenant.has_value()) return Unknown();
    if (by_certificate.has_value() && by_certificate != tenant) return Unknown();
  } else if (presented.certificate_names.empty()) {
    return base::WithReason(absl::UnauthenticatedError(
                                "this server asks who calls; send `authorization: Bearer TOKEN`"),
                            reason::kNoCredential);
  }
  if (!tenant.has_value()) return Unknown();
  return Principal(*tenant, known->tenants()[tenant->value()].name);
}

Principal Authenticator::ServersOwn() const {
  if (mode_ != Mode::kTenants) return {base::TenantId{0}, "default"};
  return {base::TenantId{0}, table()->tenants().front().name};
}

absl::StatusOr<CacheAccess> Authenticator::Access(const Principal& principal,
                                                  std::optional<std::string_view> salt,
                                                  base::RequestId id) const {
  // Minted in every mode, so that a salt is refused by the same rule.
  PAGODA_ASSIGN_OR_RETURN(scheduler::NamespaceKey key, minter_.Mint(principal.name(), salt));
  if (mode_ == Mode::kAnonymous) return OneRequestAccess(id);
  return CacheAccess{key, false};
}

CacheAccess Authenticator::OneRequestAccess(base::RequestId id) const {
  return CacheAccess{minter_.MintForOneRequest(id.value()), true};
}

void Authenticator::ReplaceCredentials(std::vector<TenantCredentials> tenants) {
  auto next = std::make_shared<const CredentialTable>(std::move(tenants));
  PAGODA_CHECK(mode_ == Mode::kTenants);
  PAGODA_CHECK(std::ranges::equal(table()->tenants(), next->tenants(), {}, &TenantCredentials::name,
                                  &TenantCredentials::name));
  base::MutexLock lock(mutex_);
  table_.swap(next);  // the old one goes after the lock
}

scheduler::NamespaceMinter::Secret DrawSecret() {
  scheduler::NamespaceMinter::Secret secret{};
  PAGODA_CHECK(getentropy(secret.data(), secret.size()) == 0);
  return secret;
}

}  // namespace pagoda::server
