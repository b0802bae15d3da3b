#include "server/grpc/admin_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/runtime/log.h"
#include "base/status_macros.h"
#include "server/core/refusal.h"
#include "server/grpc/reply_conversion.h"
#include "server/grpc/request_conversion.h"
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
  blocks.set_public_(scheduler.blocks_public);
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

void Fill(const TenantReport& from, v1::TenantStats& to) {
  to.set_name(from.name);
  to.set_waiting(from.stats.num_waiting);
  to.set_running(from.stats.num_running);
  to.set_queued_tokens(from.stats.queued_tokens);
  to.set_blocks_pinned(from.stats.blocks_pinned);
  to.set_blocks_cached(from.stats.blocks_cached);
  to.set_refused(from.num_refused);
  to.set_admitted(from.stats.num_admitted);
  to.set_preemptions(from.stats.num_preemptions);
  to.set_prompt_tokens(from.stats.prompt_tokens);
  to.set_generated_tokens(from.stats.generated_tokens);
  to.set_lifts(from.stats.num_lifts);
}

absl::Status Loading() { return Unavailable(reason::kLoading, "the model is being loaded"); }

absl::Status NotBuilt(absl::string_view what) {
  return base::WithReason(absl::UnimplementedError(what), reason::kNotBuilt);
}

}  // namespace

AdminService::Reactor* AdminService::GetStats(Context* context, const Bytes* request,
                                              Bytes* response) {
  Reactor* reactor = context->DefaultReactor();
  const Pipeline* pipeline = desk_.installed();
  absl::Status refusal = ParseMessage<v1::GetStatsRequest>(*request).status();
  if (refusal.ok() && pipeline == nullptr) refusal = Loading();
  if (!refusal.ok()) {
    reactor->Finish(ToGrpcStatus(refusal));
    return reactor;
  }
  v1::Stats stats;
  Fill(pipeline->engine_stats(), stats);
  Fill(pipeline->metrics(), *stats.mutable_requests());
  stats.mutable_requests()->set_unauthenticated(desk_.num_unauthenticated());
  for (const TenantReport& tenant : pipeline->tenant_reports()) {
    Fill(tenant, *stats.add_tenants());
  }
  *response = SerializeMessage(stats);
  reactor->Finish(::grpc::Status::OK);
  return reactor;
}

AdminService::Reactor* AdminService::Post(Context& context, const absl::Status& request,
                                          std::function<absl::Status()> command) const {
  Reactor* reactor = context.DefaultReactor();
  absl::Status refusal = request;
  if (refusal.ok() && operations_.desk == nullptr) {
    refusal = NotBuilt("this server takes no commands");
  }
  if (!refusal.ok()) {
    reactor->Finish(ToGrpcStatus(refusal));
    return reactor;
  }
  const bool posted = operations_.desk->TryPost(
      [reactor, command = std::move(command)] { reactor->Finish(ToGrpcStatus(command())); });
  if (!posted) {
    const absl::Status later = WithRetryAfter(
        absl::ResourceExhaustedError("other commands wait already, or the server is stopping"),
        kRetryAfterMs);
    AddTrailers(later, context);
    reactor->Finish(ToGrpcStatus(later));
  }
  return reactor;
}

AdminService::Reactor* AdminService::FlushPrefixCache(Context* context, const Bytes* request,
                                                      Bytes* response) {
  const auto asked = ParseMessage<v1::FlushPrefixCacheRequest>(*request);
  std::optional<std::string> tenant;
  if (asked.ok() && asked->has_tenant()) tenant = asked->tenant();
  return Post(*context, asked.status(), [this, tenant, response]() -> absl::Status {
    Pipeline* pipeline = desk_.installed();
    if (pipeline == nullptr) return Loading();
    PAGODA_ASSIGN_OR_RETURN(const std::int32_t dropped, pipeline->FlushPrefixCache(tenant));
    base::LogInfo(absl::StrCat("flushed the prefix cache of ", tenant.value_or("all tenants"), ": ",
                               dropped, " blocks"));
    v1::FlushPrefixCacheResponse reply;
    reply.set_blocks_dropped(dropped);
    *response = SerializeMessage(reply);
    return absl::OkStatus();
  });
}

AdminService::Reactor* AdminService::Reload(Context* context, const Bytes* request,
                                            Bytes* response) {
  const auto asked = ParseMessage<v1::ReloadRequest>(*request);
  return Post(*context, asked.status(), [this, response]() -> absl::Status {
    if (!operations_.reload) return NotBuilt("this server has nothing to reload");
    PAGODA_ASSIGN_OR_RETURN(const ReloadReport report, operations_.reload());
    v1::ReloadResponse reply;
    reply.set_in_effect(report.in_effect);
    reply.set_summary(report.summary);
    *response = SerializeMessage(reply);
    return absl::OkStatus();
  });
}

AdminService::Reactor* AdminService::Drain(Context* context, const Bytes* request,
                                           Bytes* response) {
  Reactor* reactor = context->DefaultReactor();
  absl::Status refusal = ParseMessage<v1::DrainRequest>(*request).status();
  if (refusal.ok() && !operations_.drain) refusal = NotBuilt("this server takes no commands");
  if (refusal.ok()) {
    operations_.drain();
    *response = SerializeMessage(v1::DrainResponse());
  }
  reactor->Finish(ToGrpcStatus(refusal));
  return reactor;
}

AdminService::Reactor* AdminService::DumpJournal(Context* context, const Bytes* request,
                                                 Bytes* response) {
  const auto asked = ParseMessage<v1::DumpJournalRequest>(*request);
  return Post(*context, asked.status(), [this, response]() -> absl::Status {
    if (!operations_.dump_journal) return NotBuilt("this server keeps no journal");
    PAGODA_ASSIGN_OR_RETURN(const JournalReport report, operations_.dump_journal());
    base::LogInfo(absl::StrCat("journal written to ", report.path, ", ", report.bytes, " bytes"));
    v1::DumpJournalResponse reply;
    reply.set_path(report.path);
    reply.set_bytes(report.bytes);
    *response = SerializeMessage(reply);
    return absl::OkStatus();
  });
}

AdminServer::~AdminServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const std::string& listen,
                                                                const FrontDesk& desk,
                                                                const Operations& operations) {
  auto made = std::make_unique<AdminServer>(desk, operations);
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
