#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/token_digest.h"

namespace pagoda::server {

// What a call presents, as its door found it. The views are of the door's memory.
struct PresentedCredentials {
  // Every value of the `authorization` header.
  std::vector<std::string_view> authorization;
  // The names in the client's certificate, which TLS has verified.
  std::vector<std::string_view> certificate_names;
};

// One tenant's, as configured. Its place in the list is its TenantId.
struct TenantCredentials {
  std::string name;
  std::vector<base::TokenDigest> token_digests;
  std::vector<std::string> certificate_names;
};

// The token in an `authorization` value: the scheme Bearer in any case, one space or more, a token.
// Unauthenticated otherwise, without a word of the value.
absl::StatusOr<std::string_view> BearerToken(std::string_view authorization);

// Who owns which credential. Threads: const after construction, any.
class CredentialTable {
 public:
  // Requires: no credential belongs to two tenants.
  explicit CredentialTable(std::vector<TenantCredentials> tenants);

  const std::vector<TenantCredentials>& tenants() const { return tenants_; }
  // Compares with every digest, whichever fits, so that the time taken says nothing about which.
  std::optional<base::TenantId> TenantOfToken(std::string_view token) const;
  // None when no name, or names of different tenants, are known.
  std::optional<base::TenantId> TenantOfCertificate(
      const std::vector<std::string_view>& names) const;

 private:
  struct Entry {
    base::TokenDigest digest;
    base::TenantId tenant;
  };
  std::vector<TenantCredentials> tenants_;
  std::vector<Entry> entries_;
};

}  // namespace pagoda::server
