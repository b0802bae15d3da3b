#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/keyed_hash.h"

namespace pagoda::server {

// What a request is called, and the seed it draws with when its caller gave none.
struct RequestName {
  base::RequestId id;  // counts all requests, so it stays inside the server
  std::string wire_id;
  std::uint64_t drawn_seed = 0;
};

// Names requests. What their callers see, the wire id and the drawn seed, follows from the tenant's
// own requests and a secret of the process alone: nobody learns from it how many requests others
// sent, and nobody who has seen some of it can tell the rest. Owner: the pipeline. Threads: any.
class RequestNames {
 public:
  RequestNames(const base::Digest256& secret, std::size_t num_tenants)
      : secret_(secret), num_named_(num_tenants + 1) {}

  RequestName NextOf(base::TenantId tenant) { return Next(tenant.value()); }
  RequestName NextOfServer() { return Next(num_named_.size() - 1); }

 private:
  RequestName Next(std::size_t place);

  const base::Digest256 secret_;
  std::atomic<std::uint64_t> next_id_{1};
  std::vector<std::atomic<std::uint64_t>> num_named_;  // by tenant; the last: the server's own
};

}  // namespace pagoda::server
