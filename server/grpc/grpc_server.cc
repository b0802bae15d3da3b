#include "server/grpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace pagoda::server {
namespace {

absl::StatusOr<std::string> ReadPem(const std::string& flag, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": cannot be read or is empty; name a PEM file"));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<::grpc::ServerCredentials>> Credentials(
    const GrpcServerOptions& options) {
  if (options.tls_cert.empty() && options.tls_key.empty() && options.tls_client_ca.empty()) {
    return ::grpc::InsecureServerCredentials();
  }
  if (options.tls_cert.empty() || options.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together; give both");
  }
  ::grpc::SslServerCredentialsOptions tls;
  PAGODA_ASSIGN_OR_RETURN(std::string key, ReadPem("--tls-key", options.tls_key));
  PAGODA_ASSIGN_OR_RETURN(std::string cert, ReadPem("--tls-cert", options.tls_cert));
  tls.pem_key_cert_pairs.push_back({std::move(key), std::move(cert)});
  if (!options.tls_client_ca.empty()) {
    PAGODA_ASSIGN_OR_RETURN(tls.pem_root_certs, ReadPem("--tls-client-ca", options.tls_client_ca));
    tls.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return ::grpc::SslServerCredentials(tls);
}

void SetLimits(const GrpcServerOptions& options, ::grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_request_bytes);
  builder.SetMaxSendMessageSize(-1);
  // Otherwise a second server shares the port silently, and clients meet either.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(options.min_ping_interval_ms));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive_ms));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(options.keepalive_timeout_ms));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
}

}  // namespace

GrpcServer::GrpcServer(FrontDesk& desk, const base::ClockSource& clock)
    : desk_(desk), inference_(desk, clock), health_(desk.lifecycle()) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              FrontDesk& desk,
                                                              const base::ClockSource& clock) {
  PAGODA_ASSIGN_OR_RETURN(auto credentials, Credentials(options));
  static const bool reflection = [] {
    ::grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  PAGODA_CHECK(reflection);
  std::unique_ptr<GrpcServer> made(new GrpcServer(desk, clock));
  ::grpc::ServerBuilder builder;
  SetLimits(options, builder);
  builder.AddListeningPort(options.listen, std::move(credentials), &made->port_);
  builder.RegisterService(&made->inference_);
  builder.RegisterService(&made->health_);
  made->server_ = builder.BuildAndStart();
  if (made->server_ == nullptr || made->port_ == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options.listen,
        ": the port is taken, the address is not this machine's, or the TLS files do not fit; "
        "choose another with --listen HOST:PORT (port 0: any free one)"));
  }
  desk.lifecycle().SetListener(&made->health_);
  return made;
}

GrpcServer::~GrpcServer() {
  if (server_ != nullptr) Shutdown(0);
}

void GrpcServer::Shutdown(std::int64_t grace_ms) {
  if (server_ == nullptr) return;
  health_.FinishWatches();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(grace_ms));
  server_->Wait();
  desk_.lifecycle().SetListener(nullptr);
  server_.reset();
}

}  // namespace pagoda::server
