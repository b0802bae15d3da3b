#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/runtime/mutex.h"
#include "scheduler/namespace.h"
#include "scheduler/namespace_minter.h"
#include "server/core/auth/credentials.h"

namespace pagoda::server {

// Who calls, as the server has established it: only the authenticator makes one, so nothing behind
// it can be reached by a caller whom it has not seen.
class Principal {
 public:
  base::TenantId tenant() const { return tenant_; }
  const std::string& name() const { return name_; }

 private:
  friend class Authenticator;
  Principal(base::TenantId tenant, std::string name) : tenant_(tenant), name_(std::move(name)) {}

  base::TenantId tenant_;
  std::string name_;
};

// A request's place in the prefix cache.
struct CacheAccess {
  scheduler::NamespaceKey cache_namespace;
  bool one_request = false;  // the request neither finds nor leaves anything
};

// Turns what a caller presents into a principal, and a principal with a salt into a namespace. The
// only user of the minter: no namespace exists that does not come from here. Owner: main; it must
// outlive everything that asks. Threads: any.
class Authenticator {
 public:
  enum class Mode : std::uint8_t {
    kOneTenant,  // everyone is `default` and shares its namespace, narrowed by the salt
    kAnonymous,  // nobody is trusted: each request has a namespace of its own
    kTenants,    // a credential says which tenant calls; without one nobody gets in
  };

  Authenticator(Mode mode, const scheduler::NamespaceMinter::Secret& secret)
      : Authenticator(mode, secret, {}) {}
  // kTenants. Requires: at least one tenant.
  Authenticator(const scheduler::NamespaceMinter::Secret& secret,
                std::vector<TenantCredentials> tenants)
      : Authenticator(Mode::kTenants, secret, std::move(tenants)) {}

  Mode mode() const { return mode_; }

  // Unauthenticated unless the credentials name one tenant: the header's token, or without a header
  // the certificate. A token never hides a certificate: both must be of the same tenant. Says why
  // no more closely than the caller may know.
  absl::StatusOr<Principal> Authenticate(const PresentedCredentials& presented) const
      PAGODA_EXCLUDES(mutex_);
  // Refuses (InvalidArgument, field cache_salt) a salt that is too long.
  absl::StatusOr<CacheAccess> Access(const Principal& principal,
                                     std::optional<std::string_view> salt,
                                     base::RequestId id) const;

  // For the server's own requests: the first tenant, and nothing left behind.
  Principal ServersOwn() const PAGODA_EXCLUDES(mutex_);
  CacheAccess OneRequestAccess(base::RequestId id) const;

  // From now on these are the credentials; calls that are inside go on. Requires: kTenants, and the
  // same names in the same order.
  void ReplaceCredentials(std::vector<TenantCredentials> tenants) PAGODA_EXCLUDES(mutex_);

 private:
  Authenticator(Mode mode, const scheduler::NamespaceMinter::Secret& secret,
                std::vector<TenantCredentials> tenants);
  std::shared_ptr<const CredentialTable> table() const PAGODA_EXCLUDES(mutex_);

  const Mode mode_;
  const scheduler::NamespaceMinter minter_;
  mutable base::Mutex mutex_;
  std::shared_ptr<const CredentialTable> table_ PAGODA_GUARDED_BY(mutex_);
};

// 32 bytes from the operating system's generator. Aborts when there are none: no secret may be
// guessable.
scheduler::NamespaceMinter::Secret DrawSecret();

}  // namespace pagoda::server
