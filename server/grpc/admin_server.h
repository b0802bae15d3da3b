#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "pagoda/v1/admin.grpc.pb.h"
#include "server/core/front_desk.h"

namespace pagoda::server {

// pagoda.v1.AdminService over the pipeline's own counts. UNAVAILABLE while the model is loading.
// Threads: gRPC's callbacks; nothing blocks.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  // Must outlive the server.
  explicit AdminService(const FrontDesk& desk) : desk_(desk) {}

  ::grpc::ServerUnaryReactor* GetStats(::grpc::CallbackServerContext* context,
                                       const v1::GetStatsRequest* request,
                                       v1::Stats* response) override;

 private:
  const FrontDesk& desk_;
};

// The operators' listener: apart from the door, because it tells of all tenants, and open until the
// very end of a drain. Owner: main.
class AdminServer {
 public:
  // Errors: Unavailable when the port is taken.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const std::string& listen,
                                                            const FrontDesk& desk);
  explicit AdminServer(const FrontDesk& desk) : service_(desk) {}
  ~AdminServer();  // Waits for no client.

  int port() const { return port_; }

 private:
  AdminService service_;
  int port_ = 0;
  std::unique_ptr<::grpc::Server> server_;  // goes first
};

}  // namespace pagoda::server
