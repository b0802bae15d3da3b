#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "scheduler/namespace.h"
#include "scheduler/namespace_minter.h"

namespace pagoda::server {

// Who calls, as the server has established it.
struct Principal {
  base::TenantId tenant{0};
  std::string name;
};

// A request's place in the prefix cache.
struct CacheAccess {
  scheduler::NamespaceKey cache_namespace;
  bool one_request = false;  // the request neither finds nor leaves anything
};

// Turns what a caller presents into a principal, and a principal with a salt into a namespace. The
// only user of the minter: no namespace exists that does not come from here. With no tenants
// configured everyone is `default`. Threads: const after construction, any.
class Authenticator {
 public:
  enum class Mode : std::uint8_t {
    kOneTenant,  // everyone is `default` and shares its namespace, narrowed by the salt
    kAnonymous,  // nobody is trusted: each request has a namespace of its own
  };

  Authenticator(Mode mode, const scheduler::NamespaceMinter::Secret& secret)
      : mode_(mode), minter_(secret) {}

  Mode mode() const { return mode_; }
  Principal Authenticate() const { return {base::TenantId{0}, "default"}; }
  // Refuses (InvalidArgument, field cache_salt) a salt that is too long.
  absl::StatusOr<CacheAccess> Access(const Principal& principal,
                                     std::optional<std::string_view> salt,
                                     base::RequestId id) const;
  // For the server's own requests: leaves nothing behind.
  CacheAccess OneRequestAccess(base::RequestId id) const;

 private:
  Mode mode_;
  scheduler::NamespaceMinter minter_;
};

// 32 bytes from the operating system's generator. Aborts when there are none: no secret may be
// guessable.
scheduler::NamespaceMinter::Secret DrawSecret();

}  // namespace pagoda::server
