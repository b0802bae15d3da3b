#include "server/grpc/admin_server.h"

#include <gtest/gtest.h>

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
                      .blocks_total = 61,
                      .num_preemptions = 4,
                      .num_evictions = 5};
  world.engine.SetStats(engine);
  FakeReader reader;
  CallInput bad = World::Ids({0});
  bad.model = "nobody";
  EXPECT_FALSE(world.pipeline.Start(std::move(bad), reader).ok());
  const auto admin = AdminServer::Start("127.0.0.1:0", world.desk);
  ASSERT_TRUE(admin.ok()) << admin.status().ToString();
  v1::Stats stats;
  ASSERT_TRUE(GetStats(**admin, stats).ok());
  const v1::BlockStats& blocks = stats.blocks();
  EXPECT_EQ(blocks.total(), 61);
  EXPECT_EQ(
      1 + blocks.free() + blocks.owned() + blocks.sealed() + blocks.cached() + blocks.retiring(),
      blocks.total());
  EXPECT_EQ(blocks.free(), 10);
  EXPECT_EQ(stats.requests().waiting(), 2);
  EXPECT_EQ(stats.requests().running(), 3);
  EXPECT_EQ(stats.requests().refused(), 1);
  EXPECT_EQ(stats.engine().steps(), 7);
  EXPECT_EQ(stats.engine().preemptions(), 4);
}

TEST(AdminServer, SaysThatTheModelIsLoadingAndThatItsPortIsTaken) {
  FrontDesk desk;
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
