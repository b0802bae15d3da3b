#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/grpc/doorway.h"

namespace pagoda::server {

// Paths of PEM files; all empty: plain text. A client CA asks every client for a certificate.
struct TlsFiles {
  std::string cert, key, client_ca;

  bool any() const { return !cert.empty() || !key.empty() || !client_ca.empty(); }
};

// What a listener checks before a call reaches a service: TLS, and whether the door is closing.
// Once `doorway` is closed every new call is refused with UNAVAILABLE, here and not by gRPC's own
// shutdown, which answers CANCELLED to a call that it meets: this runs before that. `doorway` must
// outlive the server. Errors: InvalidArgument for a file that cannot be read or is no PEM of its
// kind; whether the files fit one another shows when the server starts.
absl::StatusOr<std::shared_ptr<::grpc::ServerCredentials>> MakeDoorCredentials(
    const TlsFiles& files, Doorway& doorway);

}  // namespace pagoda::server
