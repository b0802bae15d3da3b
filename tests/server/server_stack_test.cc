#include "server/server_stack.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "server/config/check_config.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::server {
namespace {

class TinyServer : public testing::Test {
 protected:
  void SetUp() override {
    const auto path =
        std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "-stack-tiny.gguf");
    config_.model = path.string();
    config_.threads = 1;
    config_.block_size = 4;
    config_.max_num_batched_tokens = 80;
    config_.kv_cache_memory = "1MiB";
    ASSERT_TRUE(fixtures::WriteTinyGguf(config_.model).ok());
    ASSERT_TRUE(CheckConfig(config_).ok());
  }

  ServerConfig config_;
  const Authenticator authenticator_{Authenticator::Mode::kOneTenant, {}};
  FrontDesk desk_{authenticator_};
};

// SIGTERM during a load takes effect at the next of these questions.
TEST_F(TinyServer, ALoadAsksBeforeEachTensorAndEndsWhereverItIsToldTo) {
  int num_questions = 0;
  const auto load = [&](int stop_at) {
    num_questions = 0;
    return ServerStack::Load(config_, desk_, base::SystemClock(),
                             [&num_questions, stop_at] { return ++num_questions == stop_at; });
  };
  ASSERT_TRUE(load(0).ok());
  const int in_all = num_questions;
  EXPECT_GE(in_all, 1 + 2 * 4);  // embedding, and four matrices in each of two layers
  for (int stop_at = 1; stop_at <= in_all; ++stop_at) {
    EXPECT_TRUE(absl::IsCancelled(load(stop_at).status())) << stop_at;
    EXPECT_EQ(num_questions, stop_at);
  }
}

// Before a port is bound or a weight is read.
TEST_F(TinyServer, ReservesThatDoNotFitThePoolAreRefusedByTheirTenantsWithBothNumbers) {
  config_.tenants = "tenants.conf";
  config_.tenant_settings.resize(2);
  config_.tenant_settings[0].name = "alpha";
  config_.tenant_settings[1].name = "beta";
  for (TenantSettings& tenant : config_.tenant_settings) {
    tenant.max_queued_requests = 10;
    tenant.max_queued_tokens = 1000;
    tenant.reserve_blocks = 10;
  }
  EXPECT_TRUE(ServerStack::CheckTenants(config_).ok()) << ServerStack::CheckTenants(config_);
  config_.tenant_settings[0].reserve_blocks = 1'000'000;
  const absl::Status status = ServerStack::CheckTenants(config_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("--tenants tenants.conf"), absl::string_view::npos);
  EXPECT_NE(status.message().find("10000"), absl::string_view::npos) << status;
  config_.tenant_settings[0].reserve_blocks = 10;
  config_.tenant_settings[1].weight = 0;
  EXPECT_NE(ServerStack::CheckTenants(config_).message().find("tenant beta, weight"),
            absl::string_view::npos)
      << ServerStack::CheckTenants(config_);
}

TEST_F(TinyServer, AStartedStackServesUntilItIsDrained) {
  auto stack = ServerStack::Load(config_, desk_, base::SystemClock(), [] { return false; });
  ASSERT_TRUE(stack.ok()) << stack.status().ToString();
  EXPECT_EQ(desk_.installed(), nullptr);
  ASSERT_TRUE((*stack)->Start().ok());
  EXPECT_TRUE(desk_.lifecycle().healthy());
  EXPECT_NE(desk_.installed(), nullptr);
  (*stack)->Drain(base::SystemClock().Now());
  EXPECT_FALSE(desk_.lifecycle().healthy());
  EXPECT_EQ(desk_.lifecycle().state(), ServerState::kDraining);
}

}  // namespace
}  // namespace pagoda::server
