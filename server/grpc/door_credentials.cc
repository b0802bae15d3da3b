#include "server/grpc/door_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"

// gRPC lets a metadata processor refuse a call before it asks itself whether it is shutting down.
// The C++ library takes one for TLS; for plain text only the C library does, hence the credentials
// of our own.
namespace pagoda::server {
namespace {

constexpr std::string_view kPathKey = ":path";
constexpr std::string_view kCredentialKey = "authorization";

class TlsProcessor final : public ::grpc::AuthMetadataProcessor {
 public:
  explicit TlsProcessor(CallGate& gate) : gate_(gate) {}
  bool IsBlocking() const override { return false; }
  ::grpc::Status Process(const InputMetadata& metadata, ::grpc::AuthContext* connection,
                         OutputMetadata* /*consumed*/, OutputMetadata* /*response*/) override {
    PresentedCredentials presented;
    std::string_view path;
    for (const auto& [key, value] : metadata) {
      const std::string_view name(key.data(), key.size());
      const std::string_view text(value.data(), value.size());
      if (name == kPathKey) path = text;
      if (name == kCredentialKey) presented.authorization.push_back(text);
    }
    presented.certificate_names = CertificateNames(*connection);
    return gate_.LetIn(path, presented);
  }

 private:
  CallGate& gate_;
};

std::string_view ToView(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Plain text on a port.
class PlainCredentials final : public ::grpc::ServerCredentials {
 public:
  explicit PlainCredentials(CallGate& gate) : gate_(gate) {}
  void SetAuthMetadataProcessor(
      const std::shared_ptr<::grpc::AuthMetadataProcessor>& /*processor*/) override {
    PAGODA_CHECK_MSG(false, "plain text has its own");
  }

 private:
  // gRPC's own signature.  NOLINTNEXTLINE(readability-function-size)
  static void Process(void* state, grpc_auth_context* /*context*/, const grpc_metadata* metadata,
                      std::size_t num_metadata, grpc_process_auth_metadata_done_cb done,
                      void* call) {
    PresentedCredentials presented;
    std::string_view path;
    for (std::size_t i = 0; i < num_metadata; ++i) {
      const std::string_view key = ToView(metadata[i].key);
      if (key == kPathKey) path = ToView(metadata[i].value);
      if (key == kCredentialKey) presented.authorization.push_back(ToView(metadata[i].value));
    }
    const ::grpc::Status status = static_cast<CallGate*>(state)->LetIn(path, presented);
    done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.error_code()),
         status.ok() ? nullptr : status.error_message().c_str());
  }

  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* credentials = grpc_insecure_server_credentials_create();
    grpc_server_credentials_set_auth_metadata_processor(credentials, {&Process, nullptr, &gate_});
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }
  bool IsInsecure() const override { return true; }

  CallGate& gate_;
};

absl::StatusOr<std::string> ReadPem(const std::string& flag, const std::string& path,
                                    std::string_view kind) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  std::string text = std::move(content).str();
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": cannot be read or is empty; name a PEM file"));
  }
  if (absl::StrContains(text, "BEGIN ENCRYPTED")) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": is encrypted; give a key without a pass phrase"));
  }
  if (!absl::StrContains(text, base::ToAbsl(kind))) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, ": holds no PEM block \"BEGIN ",
                                                   base::ToAbsl(kind), "\"; name a PEM file"));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<::grpc::ServerCredentials>> MakeDoorCredentials(
    const TlsFiles& files, CallGate& gate) {
  if (!files.any()) return std::make_shared<PlainCredentials>(gate);
  if (files.cert.empty() || files.key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together; give both");
  }
  ::grpc::SslServerCredentialsOptions tls;
  PAGODA_ASSIGN_OR_RETURN(std::string key, ReadPem("--tls-key", files.key, "PRIVATE KEY"));
  PAGODA_ASSIGN_OR_RETURN(std::string cert, ReadPem("--tls-cert", files.cert, "CERTIFICATE"));
  tls.pem_key_cert_pairs.push_back({std::move(key), std::move(cert)});
  if (!files.client_ca.empty()) {
    PAGODA_ASSIGN_OR_RETURN(tls.pem_root_certs,
                            ReadPem("--tls-client-ca", files.client_ca, "CERTIFICATE"));
    // With tenants the gate asks call by call, and a token does as well as a certificate.
    tls.client_certificate_request =
        gate.desk().authenticator().mode() == Authenticator::Mode::kTenants
            ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
            : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  auto credentials = ::grpc::SslServerCredentials(tls);
  credentials->SetAuthMetadataProcessor(std::make_shared<TlsProcessor>(gate));
  return credentials;
}

}  // namespace pagoda::server
