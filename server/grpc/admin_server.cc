#include "server/grpc/admin_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "server/core/refusal.h"
#include "server/grpc/status_mapping.h"

namespace pagoda::server {
namespace {

void Fill(const engine::EngineStats& from, v1::Stats& to) {
  const auto& scheduler = from.scheduler;
  v1::BlockStats& blocks = *to.mutable_blocks();
  blocks.set_total(scheduler.blocks_total);
  blocks.set_free(scheduler.blocks_free);
  blocks.set_owned(scheduler.blocks_owned);
  blocks.set_sealed(scheduler.blocks_sealed);
  blocks.set_cached(scheduler.blocks_cached);
  blocks.set_retiring(scheduler.blocks_retiring);
  to.mutable_requests()->set_waiting(scheduler.num_waiting);
  to.mutable_requests()->set_running(scheduler.num_running);
  v1::EngineStats& steps = *to.mutable_engine();
  steps.set_steps(from.steps);
  steps.set_failed_steps(from.failed_steps);
  steps.set_preemptions(scheduler.num_preemptions);
  steps.set_evictions(scheduler.num_evictions);
}

void Fill(const ServerMetrics& from, v1::RequestStats& to) {
  to.set_accepted(from.requests_accepted.value());
  to.set_refused(from.requests_refused.value());
  to.set_completed(from.requests_completed.value());
  to.set_cancelled(from.requests_cancelled.value());
  to.set_failed(from.requests_failed.value());
}

}  // namespace

::grpc::ServerUnaryReactor* AdminService::GetStats(::grpc::CallbackServerContext* context,
                                                   const v1::GetStatsRequest* /*request*/,
                                                   v1::Stats* response) {
  ::grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const Pipeline* pipeline = desk_.installed();
  if (pipeline == nullptr) {
    reactor->Finish(ToGrpcStatus(Unavailable(reason::kLoading, "the model is being loaded")));
    return reactor;
  }
  Fill(pipeline->engine_stats(), *response);
  Fill(pipeline->metrics(), *response->mutable_requests());
  reactor->Finish(::grpc::Status::OK);
  return reactor;
}

AdminServer::~AdminServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const std::string& listen,
                                                                const FrontDesk& desk) {
  auto made = std::make_unique<AdminServer>(desk);
  ::grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(listen, ::grpc::InsecureServerCredentials(), &made->port_);
  builder.RegisterService(&made->service_);
  made->server_ = builder.BuildAndStart();
  if (made->server_ == nullptr || made->port_ == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", listen,
                     ": the port is taken or the address is not this machine's; choose another "
                     "with --admin-listen HOST:PORT (port 0: any free one)"));
  }
  return made;
}

}  // namespace pagoda::server
