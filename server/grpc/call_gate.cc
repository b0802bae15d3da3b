#include "server/grpc/call_gate.h"

#include <grpc/grpc_security_constants.h>

#include <array>

#include "server/grpc/status_mapping.h"

namespace pagoda::server {
namespace {

constexpr std::string_view kClosingText = "the server is stopping; send it again elsewhere";
constexpr std::array<std::string_view, 2> kOpenPaths = {"/grpc.health.v1.Health/Check",
                                                        "/grpc.health.v1.Health/Watch"};

std::string_view ToView(const ::grpc::string_ref& text) { return {text.data(), text.size()}; }

bool IsOpen(std::string_view path) { return path == kOpenPaths[0] || path == kOpenPaths[1]; }

}  // namespace

::grpc::Status CallGate::LetIn(std::string_view path, const PresentedCredentials& presented) {
  if (!IsOpen(path)) {
    const auto caller = desk_.authenticator().Authenticate(presented);
    if (!caller.ok()) {
      desk_.CountUnauthenticated();
      return ToGrpcStatus(caller.status());
    }
  }
  if (doorway_.LetIn()) return ::grpc::Status::OK;
  return {::grpc::StatusCode::UNAVAILABLE, std::string(kClosingText)};
}

std::vector<std::string_view> CertificateNames(const ::grpc::AuthContext& connection) {
  std::vector<std::string_view> names;
  const auto add = [&](const char* property) {
    for (const ::grpc::string_ref& name : connection.FindPropertyValues(property)) {
      names.push_back(ToView(name));
    }
  };
  add(GRPC_PEER_DNS_PROPERTY_NAME);
  add(GRPC_PEER_URI_PROPERTY_NAME);
  if (names.empty()) add(GRPC_X509_CN_PROPERTY_NAME);
  return names;
}

PresentedCredentials CredentialsOf(const ::grpc::CallbackServerContext& context) {
  PresentedCredentials presented;
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto entry = begin; entry != end; ++entry) {
    presented.authorization.push_back(ToView(entry->second));
  }
  if (const auto connection = context.auth_context()) {
    presented.certificate_names = CertificateNames(*connection);
  }
  return presented;
}

}  // namespace pagoda::server
