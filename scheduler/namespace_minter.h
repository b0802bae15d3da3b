#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/namespace.h"

namespace pagoda::scheduler {

// Makes NamespaceKeys: KDF(server secret, version, len || tenant, len || salt). Only
// server/core/auth, tests and benchmarks include this file (tests/tidy). Threads: const after
// construction, any.
class NamespaceMinter {
 public:
  static constexpr std::size_t kMaxSaltBytes = 256;
  using Secret = std::array<std::uint8_t, 32>;

  explicit NamespaceMinter(const Secret& secret) : secret_(secret) {}

  // An empty salt differs from an absent one. Refuses (InvalidArgument, field cache_salt) a salt
  // over kMaxSaltBytes.
  absl::StatusOr<NamespaceKey> Mint(std::string_view tenant_name,
                                    std::optional<std::string_view> salt) const;

  // A namespace that no other request has, for anonymous servers.
  NamespaceKey MintForOneRequest(std::uint64_t request_id) const;

 private:
  Secret secret_;
};

}  // namespace pagoda::scheduler
