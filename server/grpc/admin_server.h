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

using RawAdminMethods = v1::AdminService::WithRawCallbackMethod_GetStats<
    v1::AdminService::WithRawCallbackMethod_FlushPrefixCache<
        v1::AdminService::WithRawCallbackMethod_Reload<
            v1::AdminService::WithRawCallbackMethod_Drain<
                v1::AdminService::WithRawCallbackMethod_DumpJournal<v1::AdminService::Service>>>>>;

// pagoda.v1.AdminService over the pipeline's own counts and commands. UNAVAILABLE while the model
// is loading. Messages come as bytes (see ParseMessage): one that is malformed, or has a field that
// is not known, is refused, since a command narrowed by what is passed over would do too much.
// Threads: gRPC's callbacks, where nothing blocks; commands are answered from the operators' desk.
class AdminService final : public RawAdminMethods {
 public:
  using Bytes = ::grpc::ByteBuffer;
  using Context = ::grpc::CallbackServerContext;
  using Reactor = ::grpc::ServerUnaryReactor;

  // What is referred to must outlive the server.
  AdminService(const FrontDesk& desk, Operations operations)
      : desk_(desk), operations_(std::move(operations)) {}

  Reactor* GetStats(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* FlushPrefixCache(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* Reload(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* Drain(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* DumpJournal(Context* context, const Bytes* request, Bytes* response) override;

 private:
  // Has `command` carried out, and the call finished with what it returns. A request that is
  // refused does nothing.
  Reactor* Post(Context& context, const absl::Status& request,
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
