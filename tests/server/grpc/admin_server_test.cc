#include "server/grpc/admin_server.h"

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>

#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

::grpc::Status GetStats(const AdminServer& admin, v1::Stats& stats) {
  ::grpc::ClientContext context;
  const auto stub = v1::AdminService::NewStub(::grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(admin.port()), ::grpc::InsecureChannelCredentials()));
  return stub->GetStats(&context, {}, &stats);
}

TEST(AdminServer, TellsTheEnginesAndThePipelinesCounts) {
  World world;
  engine::EngineStats engine;
  engine.steps = 7;
  engine.failed_steps = 1;
  engine.scheduler = {.num_waiting = 2,
                      .num_running = 3,
                      .blocks_free = 10,
                      .blocks_owned = 11,
                      .blocks_sealed = 12,
                      .blocks_cached = 13,
                      .blocks_retiring = 14,
                      .blocks_public = 9,
                      .blocks_total = 70,
                      .num_preemptions = 4,
                      .num_evictions = 5};
  world.engine.SetStats(engine);
  FakeReader reader;
  CallInput bad = World::Ids({0});
  bad.model = "nobody";
  EXPECT_FALSE(world.pipeline.Start(world.caller, std::move(bad), reader).ok());
  const auto admin = AdminServer::Start("127.0.0.1:0", world.desk);
  ASSERT_TRUE(admin.ok()) << admin.status().ToString();
  v1::Stats stats;
  ASSERT_TRUE(GetStats(**admin, stats).ok());
  const v1::BlockStats& blocks = stats.blocks();
  EXPECT_EQ(blocks.total(), 70);
  EXPECT_EQ(1 + blocks.free() + blocks.owned() + blocks.sealed() + blocks.cached() +
                blocks.retiring() + blocks.public_(),
            blocks.total());
  EXPECT_EQ(blocks.free(), 10);
  EXPECT_EQ(stats.requests().waiting(), 2);
  EXPECT_EQ(stats.requests().running(), 3);
  EXPECT_EQ(stats.requests().refused(), 1);
  EXPECT_EQ(stats.engine().steps(), 7);
  EXPECT_EQ(stats.engine().preemptions(), 4);
}

// A world of two tenants and its admin service with commands.
struct Commanded {
  static World::Options TwoTenants() {
    World::Options options;
    options.tenants = {{.name = "alpha", .token_digests = {}, .certificate_names = {}},
                       {.name = "beta", .token_digests = {}, .certificate_names = {}}};
    return options;
  }

  Commanded() {
    Operations operations;
    operations.desk = &operators;
    operations.reload = [this] { return report; };
    operations.dump_journal = [this] { return journal; };
    operations.drain = [this] { ++num_drains; };
    auto started = AdminServer::Start("127.0.0.1:0", world.desk, operations);
    PAGODA_CHECK_MSG(started.ok(), started.status().ToString());
    admin = *std::move(started);
    stub = v1::AdminService::NewStub(::grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(admin->port()), ::grpc::InsecureChannelCredentials()));
  }

  ::grpc::Status Flush(const std::optional<std::string>& tenant,
                       v1::FlushPrefixCacheResponse& response) {
    ::grpc::ClientContext context;
    v1::FlushPrefixCacheRequest request;
    if (tenant.has_value()) request.set_tenant(*tenant);
    return stub->FlushPrefixCache(&context, request, &response);
  }

  World world{TwoTenants()};
  absl::StatusOr<ReloadReport> report = absl::InvalidArgumentError("weight = 0");
  absl::StatusOr<JournalReport> journal = absl::FailedPreconditionError("give --journal-dir");
  std::atomic<int> num_drains = 0;
  OperatorDesk operators;
  std::unique_ptr<AdminServer> admin;
  std::unique_ptr<v1::AdminService::Stub> stub;
};

TEST(AdminServer, FlushesOneTenantByNameOrAllAndSaysWhatItDropped) {
  Commanded commanded;
  v1::FlushPrefixCacheResponse response;
  ASSERT_TRUE(commanded.Flush("beta", response).ok());
  EXPECT_EQ(response.blocks_dropped(), 11);
  ASSERT_TRUE(commanded.Flush(std::nullopt, response).ok());
  const auto flushes = commanded.world.engine.flushes();
  ASSERT_EQ(flushes.size(), 2u);
  EXPECT_EQ(flushes[0], base::TenantId{1});
  EXPECT_EQ(flushes[1], std::nullopt);
  const ::grpc::Status unknown = commanded.Flush("gamma", response);
  EXPECT_EQ(unknown.error_code(), ::grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(unknown.error_message().find("known are alpha, beta"), std::string::npos);
  EXPECT_EQ(commanded.world.engine.flushes().size(), 2u);
}

// As a newer client would send them, to flush less than everything, say.
TEST(AdminServer, ACommandWithAFieldThatIsNotKnownIsRefusedAndDoesNothing) {
  Commanded commanded;
  const auto refusal = [&](auto request, auto response, auto call) {
    request.GetReflection()->MutableUnknownFields(&request)->AddVarint(900, 1);
    ::grpc::ClientContext context;
    const ::grpc::Status status = (commanded.stub.get()->*call)(&context, request, &response);
    EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNIMPLEMENTED);
    return status.error_message().substr(0, status.error_message().find(';'));
  };
  using Stub = v1::AdminService::Stub;
  EXPECT_EQ(refusal(v1::FlushPrefixCacheRequest(), v1::FlushPrefixCacheResponse(),
                    &Stub::FlushPrefixCache),
            "pagoda.v1.FlushPrefixCacheRequest: this server knows no field of number 900");
  EXPECT_EQ(refusal(v1::DrainRequest(), v1::DrainResponse(), &Stub::Drain),
            "pagoda.v1.DrainRequest: this server knows no field of number 900");
  EXPECT_EQ(refusal(v1::ReloadRequest(), v1::ReloadResponse(), &Stub::Reload),
            "pagoda.v1.ReloadRequest: this server knows no field of number 900");
  EXPECT_EQ(refusal(v1::DumpJournalRequest(), v1::DumpJournalResponse(), &Stub::DumpJournal),
            "pagoda.v1.DumpJournalRequest: this server knows no field of number 900");
  EXPECT_EQ(refusal(v1::GetStatsRequest(), v1::Stats(), &Stub::GetStats),
            "pagoda.v1.GetStatsRequest: this server knows no field of number 900");
  EXPECT_TRUE(commanded.world.engine.flushes().empty());
  EXPECT_EQ(commanded.num_drains.load(), 0);
}

// The status of a call whose message is these bytes.
::grpc::Status SendBytes(const AdminServer& admin, const std::string& method,
                         const std::string& bytes) {
  ::grpc::GenericStub stub(::grpc::CreateChannel("127.0.0.1:" + std::to_string(admin.port()),
                                                 ::grpc::InsecureChannelCredentials()));
  ::grpc::ClientContext context;
  const ::grpc::Slice slice(bytes);
  const ::grpc::ByteBuffer request(&slice, 1);
  ::grpc::ByteBuffer response;
  std::promise<::grpc::Status> ended;
  stub.UnaryCall(&context, "/pagoda.v1.AdminService/" + method, {}, &request, &response,
                 [&](const ::grpc::Status& status) { ended.set_value(status); });
  return ended.get_future().get();
}

TEST(AdminServer, AMessageThatIsCutOrNotUtf8IsRefusedByNameAndDoesNothing) {
  Commanded commanded;
  const std::string cut = "\x0a\x7f";  // a field of 127 bytes that do not follow
  for (const std::string method :
       {"GetStats", "FlushPrefixCache", "Reload", "Drain", "DumpJournal"}) {
    const ::grpc::Status status = SendBytes(*commanded.admin, method, cut);
    EXPECT_EQ(status.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(ReasonIn(status), "MALFORMED_REQUEST") << method;
    EXPECT_NE(status.error_message().find("not a valid pagoda.v1." + method + "Request"),
              std::string::npos)
        << status.error_message();
  }
  const ::grpc::Status status = SendBytes(*commanded.admin, "FlushPrefixCache", "\x0a\x01\xff");
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(commanded.world.engine.flushes().empty());
  EXPECT_EQ(commanded.num_drains.load(), 0);
}

TEST(AdminServer, ReloadsAndDrainsAndSaysWhereItsJournalIs) {
  Commanded commanded;
  const auto reload = [&](v1::ReloadResponse& response) {
    ::grpc::ClientContext context;
    return commanded.stub->Reload(&context, {}, &response);
  };
  v1::ReloadResponse response;
  const ::grpc::Status bad = reload(response);
  EXPECT_EQ(bad.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(bad.error_message(), "weight = 0");
  commanded.report = ReloadReport{.in_effect = true, .summary = "2 tenants"};
  ASSERT_TRUE(reload(response).ok());
  EXPECT_TRUE(response.in_effect());
  EXPECT_EQ(response.summary(), "2 tenants");
  ::grpc::ClientContext drain_context, journal_context;
  v1::DrainResponse drained;
  EXPECT_TRUE(commanded.stub->Drain(&drain_context, {}, &drained).ok());
  EXPECT_EQ(commanded.num_drains.load(), 1);
  v1::DumpJournalResponse journal;
  const ::grpc::Status none = commanded.stub->DumpJournal(&journal_context, {}, &journal);
  EXPECT_EQ(none.error_code(), ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(none.error_message(), "give --journal-dir");
  commanded.journal = JournalReport{.path = "somewhere", .bytes = 12};
  ::grpc::ClientContext again;
  ASSERT_TRUE(commanded.stub->DumpJournal(&again, {}, &journal).ok());
  EXPECT_EQ(journal.path(), "somewhere");
  EXPECT_EQ(journal.bytes(), 12);
}

TEST(AdminServer, TellsEachTenantsFigures) {
  Commanded commanded;
  commanded.world.engine.SetTenantStats({{.num_waiting = 1, .num_running = 2},
                                         {.blocks_pinned = 3,
                                          .blocks_cached = 4,
                                          .num_admitted = 5,
                                          .num_preemptions = 6,
                                          .num_lifts = 9,
                                          .prompt_tokens = 7,
                                          .generated_tokens = 8}});
  commanded.world.desk.CountUnauthenticated();
  v1::Stats stats;
  ASSERT_TRUE(GetStats(*commanded.admin, stats).ok());
  ASSERT_EQ(stats.tenants_size(), 2);
  EXPECT_EQ(stats.tenants(0).name(), "alpha");
  EXPECT_EQ(stats.tenants(0).running(), 2);
  EXPECT_EQ(stats.tenants(1).blocks_cached(), 4);
  EXPECT_EQ(stats.tenants(1).generated_tokens(), 8);
  EXPECT_EQ(stats.tenants(1).lifts(), 9);
  EXPECT_EQ(stats.requests().unauthenticated(), 1);
}

TEST(AdminServer, WithoutADeskCommandsAreRefusedByName) {
  World world;
  const auto admin = AdminServer::Start("127.0.0.1:0", world.desk);
  ASSERT_TRUE(admin.ok());
  const auto stub = v1::AdminService::NewStub(::grpc::CreateChannel(
      "127.0.0.1:" + std::to_string((*admin)->port()), ::grpc::InsecureChannelCredentials()));
  ::grpc::ClientContext context;
  v1::ReloadResponse response;
  EXPECT_EQ(stub->Reload(&context, {}, &response).error_code(), ::grpc::StatusCode::UNIMPLEMENTED);
}

TEST(AdminServer, SaysThatTheModelIsLoadingAndThatItsPortIsTaken) {
  const Authenticator authenticator(Authenticator::Mode::kOneTenant, {});
  FrontDesk desk(authenticator);
  const auto admin = AdminServer::Start("127.0.0.1:0", desk);
  ASSERT_TRUE(admin.ok());
  v1::Stats stats;
  const ::grpc::Status status = GetStats(**admin, stats);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(status), "MODEL_LOADING");
  const std::string taken = "127.0.0.1:" + std::to_string((*admin)->port());
  const auto second = AdminServer::Start(taken, desk);
  EXPECT_NE(second.status().message().find("--admin-listen"), absl::string_view::npos);
}

}  // namespace
}  // namespace pagoda::server
