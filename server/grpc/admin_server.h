#pragma once

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "pagoda/v1/admin.grpc.pb.h"
#include "server/core/front_desk.h"
#include "server/core/operations.h"

namespace pagoda::server {

// pagoda.v1.AdminService over the pipeline's own counts and commands. UNAVAILABLE while the model
// is loading. Threads: gRPC's callbacks, where nothing blocks; commands are answered from the
// operators' desk.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  using Context = ::grpc::CallbackServerContext;
  using Reactor = ::grpc::ServerUnaryReactor;

  // What is referred to must outlive the server.
  AdminService(const FrontDesk& desk, Operations operations)
      : desk_(desk), operations_(std::move(operations)) {}

  Reactor* GetStats(Context* context, const v1::GetStatsRequest* request,
                    v1::Stats* response) override;
  Reactor* FlushPrefixCache(Context* context, const v1::FlushPrefixCacheRequest* request,
                            v1::FlushPrefixCacheResponse* response) override;
  Reactor* Reload(Context* context, const v1::ReloadRequest* request,
                  v1::ReloadResponse* response) override;
  Reactor* Drain(Context* context, const v1::DrainRequest* request,
                 v1::DrainResponse* response) override;
  Reactor* DumpJournal(Context* context, const v1::DumpJournalRequest* request,
                       v1::DumpJournalResponse* response) override;

 private:
  // Has `command` carried out, and the call finished with what it returns. Not when the request has
  // a field that is not known: a command narrowed by what is passed over would do too much.
  Reactor* Post(Context& context, const google::protobuf::Message& request,
                std::function<absl::Status()> command) const;

  const FrontDesk& desk_;
  const Operations operations_;
};

// The operators' listener: apart from the door, because it tells of all tenants, and open until the
// very end of a drain. Owner: main.
class AdminServer {
 public:
  // Errors: Unavailable when the port is taken.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const std::string& listen,
                                                            const FrontDesk& desk,
                                                            const Operations& operations = {});
  AdminServer(const FrontDesk& desk, const Operations& operations) : service_(desk, operations) {}
  ~AdminServer();  // Waits for no client.

  int port() const { return port_; }

 private:
  AdminService service_;
  int port_ = 0;
  std::unique_ptr<::grpc::Server> server_;  // goes first
};

}  // namespace pagoda::server
