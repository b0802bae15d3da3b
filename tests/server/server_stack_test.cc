#include "server/server_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "server/config/check_config.h"
#include "server/config/tenants_file.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;  // of memory

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
  EXPECT_TRUE(ServerStack::CheckStart(config_, kPlenty).ok())
      << ServerStack::CheckStart(config_, kPlenty);
  config_.tenant_settings[0].reserve_blocks = 1'000'000;
  const absl::Status status = ServerStack::CheckStart(config_, kPlenty);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("--tenants tenants.conf"), absl::string_view::npos);
  EXPECT_NE(status.message().find("10000"), absl::string_view::npos) << status;
  config_.tenant_settings[0].reserve_blocks = 10;
  config_.tenant_settings[1].weight = 0;
  EXPECT_NE(ServerStack::CheckStart(config_, kPlenty).message().find("tenant beta, weight"),
            absl::string_view::npos)
      << ServerStack::CheckStart(config_, kPlenty);
}

// Each running request may have a cache namespace of its own, however many run.
TEST_F(TinyServer, AsManySequencesAsTheFlagAllowsAreStarted) {
  config_.max_num_seqs = 4096;
  config_.max_num_batched_tokens = 8192;
  EXPECT_TRUE(ServerStack::CheckStart(config_, kPlenty).ok())
      << ServerStack::CheckStart(config_, kPlenty);
}

TEST_F(TinyServer, WithoutTenantsABoundThatDoesNotDoIsRefusedByItsFlagBeforeTheLoad) {
  config_.max_model_len = 1;
  EXPECT_THAT(ServerStack::CheckStart(config_, kPlenty).message(),
              HasSubstr("--max-model-len: is 1, at least 2"));
}

TEST_F(TinyServer, AReloadThatIsRefusedNamesTheTenantTheKeyAndTheNumbers) {
  config_.tenants = config_.model + ".tenants";
  const auto write = [&](std::string_view beta) {
    std::ofstream(config_.tenants) << "[alpha]\n[beta]\n" << beta << "\n";
  };
  write("reserve-blocks = 10");
  auto read = LoadTenants(config_);
  ASSERT_TRUE(read.ok()) << read.status();
  config_.tenant_settings = *std::move(read);
  auto stack = ServerStack::Load(config_, desk_, base::SystemClock(), [] { return false; });
  ASSERT_TRUE(stack.ok()) << stack.status();
  ASSERT_TRUE((*stack)->Start().ok());
  Authenticator authenticator(Authenticator::Mode::kOneTenant, {});
  const auto refusal = [&] {
    return std::string((*stack)->ReloadTenants(authenticator).status().message());
  };
  const std::string file = "--tenants " + config_.tenants + ": ";
  write("weight = 1000");
  EXPECT_THAT(refusal(),
              HasSubstr(file + "--max-num-seqs: is 64, of which tenant alpha with weight "
                               "1 of 1001 has 0; at least 1"));
  write("reserve-blocks = 1000000");
  EXPECT_THAT(refusal(), HasSubstr(file + "the blocks of --kv-cache-memory: is "));
  EXPECT_THAT(refusal(), HasSubstr(", at least 10"));
  (*stack)->Drain(base::SystemClock().Now());
}

TEST_F(TinyServer, WeightsThatDoNotFitIntoMemoryAreRefusedBeforeTheyArePackedWithBothNumbers) {
  const absl::Status status = ServerStack::CheckStart(config_, 10'000);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("the weights of"), HasSubstr("KiB packed"),
                                      HasSubstr("9.8 KiB are available"), HasSubstr("smaller")));
  config_.kv_cache_bytes.reset();  // auto
  EXPECT_THAT(ServerStack::CheckStart(config_, 10'000).message(), HasSubstr("9.8 KiB are"));
}

TEST_F(TinyServer, APoolThatDoesNotFitBesideTheWeightsIsRefusedBeforeTheyArePacked) {
  constexpr std::int64_t kPool = std::int64_t{1} << 30;
  config_.kv_cache_bytes = kPool;
  EXPECT_TRUE(ServerStack::CheckStart(config_, kPool + (1 << 20)).ok());
  const absl::Status status = ServerStack::CheckStart(config_, kPool);  // none for the weights
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("--kv-cache-memory asks for 1.0 GiB"), HasSubstr("the weights of"),
                    HasSubstr("1.0 GiB are available"), HasSubstr("lower --kv-cache-memory")));
}

// The memory that the refusal names is enough: the nearest tenth could be too little.
TEST_F(TinyServer, TheMemoryThatARefusalNamesIsEnough) {
  for (std::int64_t pool = 1 << 20; pool < (1 << 20) + 20 * 9973; pool += 9973) {
    config_.kv_cache_bytes = pool;
    const std::string refusal(ServerStack::CheckStart(config_, pool).message());
    const std::string before = absl::StrCat("asks for ", base::FormatBytes(pool), ", ");
    ASSERT_THAT(refusal, HasSubstr(before));
    const std::size_t begin = refusal.find(before) + before.size();
    const auto named = base::ParseByteSize(
        std::string_view(refusal).substr(begin, refusal.find(" in all") - begin));
    ASSERT_TRUE(named.ok()) << refusal;
    EXPECT_TRUE(ServerStack::CheckStart(config_, *named).ok()) << refusal;
  }
}

// What --check-config tells.
TEST_F(TinyServer, AModelThatIsCutOrTooShortForWhatIsAskedIsFoundWithoutLoading) {
  EXPECT_TRUE(ServerStack::CheckContent(config_).ok());
  config_.max_model_len = 100'000;
  EXPECT_THAT(ServerStack::CheckStart(config_, kPlenty).message(), HasSubstr("max-model-len"));
  config_.max_model_len = 0;
  std::filesystem::resize_file(config_.model, std::filesystem::file_size(config_.model) / 2);
  EXPECT_THAT(ServerStack::CheckStart(config_, kPlenty).message(), HasSubstr(config_.model));
  std::filesystem::resize_file(config_.model, 100);
  EXPECT_FALSE(ServerStack::CheckContent(config_).ok());
}

TEST_F(TinyServer, WhatOnlyTheTensorsTellIsToldWithoutLoadingInTheWordsOfALoad) {
  ASSERT_TRUE(fixtures::WriteTinyGguf(config_.model,
                                      {.norm_weight = std::numeric_limits<float>::infinity()})
                  .ok());
  EXPECT_TRUE(ServerStack::CheckStart(config_, kPlenty).ok());
  const absl::Status told = ServerStack::CheckContent(config_);
  EXPECT_THAT(told.message(), HasSubstr("'blk.0.attn_norm.weight' holds a value that is not"));
  EXPECT_EQ(told,
            ServerStack::Load(config_, desk_, base::SystemClock(), [] { return false; }).status());
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
