#include "server/grpc/grpc_server.h"

#include <gtest/gtest.h>

#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

TEST(GrpcServer, APortThatIsTakenIsSaid) {
  DoorWorld door;
  GrpcServerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(door.server->port());
  FrontDesk desk;
  const auto second = GrpcServer::Start(options, desk, base::SystemClock());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(options.listen), absl::string_view::npos);
}

TEST(GrpcServer, TlsFilesThatCannotBeReadOrAreNotAPairAreSaid) {
  FrontDesk desk;
  GrpcServerOptions options;
  options.listen = "127.0.0.1:0";
  options.tls_cert = "no/such/cert.pem";
  EXPECT_NE(
      GrpcServer::Start(options, desk, base::SystemClock()).status().message().find("--tls-key"),
      absl::string_view::npos);
  options.tls_key = "no/such/key.pem";
  EXPECT_NE(GrpcServer::Start(options, desk, base::SystemClock())
                .status()
                .message()
                .find("no/such/key.pem"),
            absl::string_view::npos);
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
