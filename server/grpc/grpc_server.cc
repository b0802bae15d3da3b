#include "server/grpc/grpc_server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace pagoda::server {
namespace {

// For calls that were let in to meet their service: microseconds, unless threads wait for a core.
constexpr std::chrono::milliseconds kArrivalsGrace{1000};
// For connections to close once no reply is under way. Not longer, because an idle client may take
// seconds to notice.
constexpr std::chrono::milliseconds kConnectionsGrace{250};

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

// Whether a server with these files starts where nothing else can be in the way.
bool CanStart(const TlsFiles& files, CallGate& gate) {
  const auto credentials = MakeDoorCredentials(files, gate);
  if (!credentials.ok()) return false;
  ::grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", *credentials, &port);
  ::grpc::CallbackGenericService service;
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  return server != nullptr && port != 0;
}

// gRPC says only that it could not start; what stands in the way is found by trying without.
absl::Status WhyNotStarted(const GrpcServerOptions& options, CallGate& gate) {
  const TlsFiles& tls = options.tls;
  const TlsFiles without_ca = {.cert = tls.cert, .key = tls.key, .client_ca = ""};
  if (tls.any() && !CanStart(without_ca, gate)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert ", tls.cert, " and --tls-key ", tls.key,
                     ": not a certificate chain and its private key; give two PEM files that "
                     "belong together"));
  }
  if (!tls.client_ca.empty() && !CanStart(tls, gate)) {
    return absl::InvalidArgumentError(absl::StrCat("--tls-client-ca ", tls.client_ca,
                                                   ": holds no certificate that can be read; give "
                                                   "a PEM file of CA certificates"));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", options.listen,
                   ": the port is taken or the address is not this machine's; choose another with "
                   "--listen HOST:PORT (port 0: any free one)"));
}

}  // namespace

GrpcServer::GrpcServer(FrontDesk& desk, const base::ClockSource& clock)
    : desk_(desk), gate_(doorway_, desk), inference_(desk, clock), health_(desk.lifecycle()) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              FrontDesk& desk,
                                                              const base::ClockSource& clock) {
  static const bool reflection = [] {
    ::grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  PAGODA_CHECK(reflection);
  // It writes a line of its own for a text that is not UTF-8, whoever sends one.
  google::protobuf::SetLogHandler(nullptr);
  std::unique_ptr<GrpcServer> made(new GrpcServer(desk, clock));
  PAGODA_ASSIGN_OR_RETURN(auto credentials, MakeDoorCredentials(options.tls, made->gate_));
  ::grpc::ServerBuilder builder;
  SetLimits(options, builder);
  builder.AddListeningPort(options.listen, std::move(credentials), &made->port_);
  builder.RegisterService(&made->inference_);
  builder.RegisterService(&made->health_);
  std::vector<std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>> watches;
  watches.push_back(MakeArrivalWatch(made->doorway_));
  builder.experimental().SetInterceptorCreators(std::move(watches));
  made->server_ = builder.BuildAndStart();
  if (made->server_ == nullptr || made->port_ == 0) {
    return WhyNotStarted(options, made->gate_);
  }
  desk.lifecycle().SetListener(&made->health_);
  return made;
}

GrpcServer::~GrpcServer() {
  if (server_ != nullptr) Shutdown(0);
}

void GrpcServer::Shutdown(std::int64_t grace_ms) {
  if (server_ == nullptr) return;
  doorway_.Close();
  doorway_.WaitUntilEmpty(std::chrono::steady_clock::now() + kArrivalsGrace);
  health_.FinishWatches();
  inference_.WaitUntilNoStream(std::chrono::steady_clock::now() +
                               std::chrono::milliseconds(grace_ms));
  server_->Shutdown(std::chrono::system_clock::now() + kConnectionsGrace);
  server_->Wait();
  desk_.lifecycle().SetListener(nullptr);
  server_.reset();
}

}  // namespace pagoda::server
