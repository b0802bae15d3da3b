#include "server/grpc/grpc_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

TEST(GrpcServer, APortThatIsTakenIsSaid) {
  DoorWorld door;
  GrpcServerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(door.server->port());
  const Authenticator authenticator(Authenticator::Mode::kOneTenant, {});
  FrontDesk desk(authenticator);
  const auto second = GrpcServer::Start(options, desk, base::SystemClock());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(options.listen), absl::string_view::npos);
}

TEST(GrpcServer, TlsFilesThatCannotBeReadOrAreNotAPairAreSaid) {
  const Authenticator authenticator(Authenticator::Mode::kOneTenant, {});
  FrontDesk desk(authenticator);
  GrpcServerOptions options;
  options.listen = "127.0.0.1:0";
  options.tls.cert = "no/such/cert.pem";
  EXPECT_NE(
      GrpcServer::Start(options, desk, base::SystemClock()).status().message().find("--tls-key"),
      absl::string_view::npos);
  options.tls.key = "no/such/key.pem";
  EXPECT_NE(GrpcServer::Start(options, desk, base::SystemClock())
                .status()
                .message()
                .find("no/such/key.pem"),
            absl::string_view::npos);
}

// Row F8: gRPC's own shutdown would cancel some of these. Many doors, because only a call that
// arrives within microseconds of the shutdown shows the difference.
TEST(GrpcServer, CallsThatMeetTheShutdownAreRefusedAndNotCancelled) {
  for (int round = 0; round < 20; ++round) {
    DoorWorld door;
    std::atomic<int> num_started = 0, num_refused = 0;
    std::vector<std::jthread> clients;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&] {
        ::grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        const auto stub = v1::InferenceService::NewStub(
            ::grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(door.server->port()),
                                        ::grpc::InsecureChannelCredentials(), arguments));
        ::grpc::Status status;
        for (int call = 0; status.ok(); ++call) {
          ::grpc::ClientContext context;
          v1::Model model;
          status = stub->GetModel(&context, {}, &model);
          if (call == 0) ++num_started;
        }
        EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNAVAILABLE) << status.error_message();
        ++num_refused;
      });
    }
    while (num_started.load() < 4) std::this_thread::yield();
    door.server->Shutdown(60'000);
    clients.clear();
    EXPECT_EQ(num_refused.load(), 4);
  }
}

TEST(GrpcServer, ShuttingDownCutsOffWhatDoesNotEndInTime) {
  DoorWorld door({}, /*engine_runs=*/false);
  ::grpc::ClientContext context;
  auto reader = door.stub->Generate(&context, TextRequest("a", 5));
  while (door.world.engine.submitted().empty()) std::this_thread::yield();
  std::jthread engine([&door](const std::stop_token& stop) {
    while (!stop.stop_requested()) door.world.engine.ReadMail();
  });
  door.server->Shutdown(0);
  EXPECT_FALSE(ReadAll(*reader).status.ok());
}

}  // namespace
}  // namespace pagoda::server
