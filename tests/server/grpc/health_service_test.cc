#include "server/grpc/health_service.h"

#include <gtest/gtest.h>

#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

using Request = HealthService::Request;
using Response = HealthService::Response;
using ::grpc::health::v1::Health;

::grpc::Status Check(DoorWorld& door, const std::string& service, Response& response) {
  Request request;
  request.set_service(service);
  ::grpc::ClientContext context;
  return Health::NewStub(door.channel)->Check(&context, request, &response);
}

World::Options NotServing() {
  World::Options options;
  options.serving = false;
  return options;
}

// Row F9: live, but not serving before the server says so.
TEST(HealthService, BothNamesFollowTheLifecycleAndOthersAreUnknown) {
  DoorWorld door(NotServing());
  Response response;
  for (const char* name : {"", "pagoda.v1.InferenceService"}) {
    ASSERT_TRUE(Check(door, name, response).ok());
    EXPECT_EQ(response.status(), Response::NOT_SERVING);
  }
  door.world.lifecycle.MoveTo(ServerState::kServing);
  for (const char* name : {"", "pagoda.v1.InferenceService"}) {
    ASSERT_TRUE(Check(door, name, response).ok());
    EXPECT_EQ(response.status(), Response::SERVING);
  }
  door.world.lifecycle.MoveTo(ServerState::kDraining);
  ASSERT_TRUE(Check(door, "", response).ok());
  EXPECT_EQ(response.status(), Response::NOT_SERVING);
  EXPECT_EQ(Check(door, "other", response).error_code(), ::grpc::StatusCode::NOT_FOUND);
}

TEST(HealthService, AWatchSeesEachChangeAndEndsWithTheServer) {
  DoorWorld door(NotServing());
  auto stub = Health::NewStub(door.channel);
  ::grpc::ClientContext context, unknown_context;
  auto watch = stub->Watch(&context, {});
  Response response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::NOT_SERVING);
  door.world.lifecycle.MoveTo(ServerState::kServing);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::SERVING);
  door.world.lifecycle.SetEngineFailed();
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::NOT_SERVING);
  Request unknown;
  unknown.set_service("other");
  auto other = stub->Watch(&unknown_context, unknown);
  ASSERT_TRUE(other->Read(&response));
  EXPECT_EQ(response.status(), Response::SERVICE_UNKNOWN);
  door.server->Shutdown(60'000);
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_FALSE(other->Read(&response));
}

TEST(HealthService, WatchersThatLeaveWhileHealthChangesAreForgotten) {
  DoorWorld door;
  std::jthread flipper([&door](const std::stop_token& stop) {
    bool stalled = false;
    while (!stop.stop_requested()) {
      stalled = !stalled;
      door.world.lifecycle.SetEngineStalled(stalled);
    }
  });
  auto stub = Health::NewStub(door.channel);
  for (int i = 0; i < 50; ++i) {
    ::grpc::ClientContext context;
    auto watch = stub->Watch(&context, {});
    Response response;
    for (int reads = 0; reads <= i % 3; ++reads) EXPECT_TRUE(watch->Read(&response));
    context.TryCancel();
    while (watch->Read(&response)) {
    }
    EXPECT_EQ(watch->Finish().error_code(), ::grpc::StatusCode::CANCELLED);
  }
}

}  // namespace
}  // namespace pagoda::server
