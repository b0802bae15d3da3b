#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/grpc/call_gate.h"

namespace pagoda::server {

// Paths of PEM files; all empty: plain text. A client CA asks every client for a certificate, and
// requires one unless tokens can say who calls.
struct TlsFiles {
  std::string cert, key, client_ca;

  bool any() const { return !cert.empty() || !key.empty() || !client_ca.empty(); }
};

// What a listener checks before a call reaches a service: TLS, who calls, and whether the door is
// closing. Once it is, every new call is refused with UNAVAILABLE, here and not by gRPC's own
// shutdown, which answers CANCELLED to a call that it meets: this runs before that. `gate` must
// outlive the server. Errors: InvalidArgument for a file that cannot be read or is no PEM of its
// kind; whether the files fit one another shows when the server starts.
absl::StatusOr<std::shared_ptr<::grpc::ServerCredentials>> MakeDoorCredentials(
    const TlsFiles& files, CallGate& gate);

}  // namespace pagoda::server
