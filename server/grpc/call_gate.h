#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string_view>

#include "server/core/auth/credentials.h"
#include "server/core/front_desk.h"
#include "server/grpc/doorway.h"

namespace pagoda::server {

// Stands before every service of a door, ours and the library's, and refuses a call before its
// message is read: deny by default. Without a credential only the health service answers, since
// probes have none. What a service then does it does for the principal that it asks of the
// authenticator itself: gRPC keeps nothing of a call for it, only of the connection, which callers
// may share. Owner: the server of the door. Threads: any.
class CallGate {
 public:
  // Both must outlive this.
  CallGate(Doorway& doorway, FrontDesk& desk) : doorway_(doorway), desk_(desk) {}

  // OK: the call is on its way. `path` is its method's, "/package.Service/Method".
  ::grpc::Status LetIn(std::string_view path, const PresentedCredentials& presented);

  const FrontDesk& desk() const { return desk_; }

 private:
  Doorway& doorway_;
  FrontDesk& desk_;
};

// The names in a verified client certificate: those for machines and services (DNS, URI), or where
// it has none its common name. The views live as long as the connection.
std::vector<std::string_view> CertificateNames(const ::grpc::AuthContext& connection);

// What a call presents. The views live as long as `context`.
PresentedCredentials CredentialsOf(const ::grpc::CallbackServerContext& context);

}  // namespace pagoda::server
