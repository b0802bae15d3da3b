#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/process/server_fixture.h"

namespace pagoda::process {
namespace {

using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckResponse;

// A client that pings many times a second, also without calls and without data.
::grpc::ChannelArguments Pinging() {
  ::grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 600'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return arguments;
}

// A call that says something once and then nothing for as long as health does not change.
struct SilentCall {
  explicit SilentCall(const Server& server)
      : reader(Health::NewStub(server.NewChannel(Pinging()))->Watch(&context, {})) {
    EXPECT_TRUE(reader->Read(&health));
    EXPECT_EQ(health.status(), HealthCheckResponse::SERVING);
  }
  ::grpc::ClientContext context;
  std::unique_ptr<::grpc::ClientReader<HealthCheckResponse>> reader;
  HealthCheckResponse health;
};

// Row F1. How long it takes to be cut off for pinging is told by a server that forbids it: in that
// time the other has had as many pings.
TEST(Keepalive, PingsAsOftenAsTheFlagAllowsCutNoSilentStream) {
  std::vector<std::string> allowing = kTinyFlags;
  allowing.insert(allowing.end(), {"--min-ping-interval", "0.001"});
  std::vector<std::string> forbidding = kTinyFlags;
  forbidding.insert(forbidding.end(), {"--min-ping-interval", "3600"});
  const std::string model = TinyFile();
  Server kind(model, allowing), strict(model, forbidding);
  SilentCall stays(kind), goes(strict);
  const auto idle = kind.NewChannel(Pinging());  // pings without any call
  ASSERT_TRUE(idle->WaitForConnected(std::chrono::system_clock::time_point::max()));
  EXPECT_FALSE(goes.reader->Read(&goes.health));
  EXPECT_EQ(goes.reader->Finish().error_code(), ::grpc::StatusCode::UNAVAILABLE);

  EXPECT_EQ(idle->GetState(/*try_to_connect=*/false), GRPC_CHANNEL_READY);

  kind.process.Signal(SIGTERM);
  ASSERT_TRUE(stays.reader->Read(&stays.health));
  EXPECT_EQ(stays.health.status(), HealthCheckResponse::NOT_SERVING);
}

}  // namespace
}  // namespace pagoda::process
