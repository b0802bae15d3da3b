#pragma once

#include <grpcpp/server.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/instant.h"
#include "base/runtime/clock.h"
#include "server/core/front_desk.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/door_credentials.h"
#include "server/grpc/doorway.h"
#include "server/grpc/health_service.h"
#include "server/grpc/inference_service.h"

namespace pagoda::server {

struct GrpcServerOptions {
  std::string listen = "127.0.0.1:8470";  // HOST:PORT; port 0: any free one
  TlsFiles tls;
  std::int32_t max_request_bytes = 64 << 20;
  // A client may ping this often, with and without calls; more often is too_many_pings.
  std::int64_t min_ping_interval_ms = 10'000;
  // We ping silent connections this often, and drop those that do not answer.
  std::int64_t keepalive_ms = 60'000;
  std::int64_t keepalive_timeout_ms = 20'000;
  std::int32_t max_streams_per_connection = 1024;
};

// The gRPC door: services, reflection, health, limits. Open from Start on; what it answers is the
// front desk's to say. Owner: main. Destroyed only after Shutdown.
class GrpcServer {
 public:
  // Errors say what was asked and what is in the way: a port that is taken, a file that cannot be
  // read.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           FrontDesk& desk,
                                                           const base::ClockSource& clock);
  ~GrpcServer();

  int port() const { return port_; }
  // Takes no new calls: they get UNAVAILABLE, those under way go on, and what is still open when
  // the time comes is cut off. Blocks until all are done.
  void Shutdown(std::int64_t grace_ms);

 private:
  GrpcServer(FrontDesk& desk, const base::ClockSource& clock);

  FrontDesk& desk_;
  Doorway doorway_;
  CallGate gate_;
  InferenceService inference_;
  HealthService health_;
  std::unique_ptr<::grpc::Server> server_;
  int port_ = 0;
};

}  // namespace pagoda::server
