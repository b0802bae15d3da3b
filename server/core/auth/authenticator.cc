#include "server/core/auth/authenticator.h"

#include <unistd.h>

#include "base/check.h"
#include "base/status_macros.h"

namespace pagoda::server {

absl::StatusOr<CacheAccess> Authenticator::Access(const Principal& principal,
                                                  std::optional<std::string_view> salt,
                                                  base::RequestId id) const {
  // Minted in both modes, so that a salt is refused by the same rule.
  PAGODA_ASSIGN_OR_RETURN(scheduler::NamespaceKey key, minter_.Mint(principal.name, salt));
  if (mode_ == Mode::kAnonymous) return OneRequestAccess(id);
  return CacheAccess{key, false};
}

CacheAccess Authenticator::OneRequestAccess(base::RequestId id) const {
  return CacheAccess{minter_.MintForOneRequest(id.value()), true};
}

scheduler::NamespaceMinter::Secret DrawSecret() {
  scheduler::NamespaceMinter::Secret secret{};
  PAGODA_CHECK(getentropy(secret.data(), secret.size()) == 0);
  return secret;
}

}  // namespace pagoda::server
