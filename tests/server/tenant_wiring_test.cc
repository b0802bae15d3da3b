#include "server/tenant_wiring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pagoda::server {
namespace {

using testing::HasSubstr;

TenantSettings Tenant(const std::string& name, std::int32_t weight = 1) {
  TenantSettings tenant;
  tenant.name = name;
  tenant.weight = weight;
  tenant.max_queued_requests = 3;
  tenant.max_queued_tokens = 5;
  return tenant;
}

TEST(TenantWiring, WithoutTenantsThereIsOneThatHasEverything) {
  ServerConfig config;
  const auto bounds = BoundsOf(config);
  ASSERT_EQ(bounds.size(), 1u);
  EXPECT_EQ(bounds.front().name, "default");
  EXPECT_EQ(bounds.front().max_requests, config.max_queued_requests);
  EXPECT_EQ(MakeAuthenticator(config)->mode(), Authenticator::Mode::kOneTenant);
  config.anonymous = true;
  EXPECT_EQ(MakeAuthenticator(config)->mode(), Authenticator::Mode::kAnonymous);
}

TEST(TenantWiring, EveryPartHasTheTenantsInTheOrderOfTheFile) {
  ServerConfig config;
  config.tenant_settings = {Tenant("beta", 2), Tenant("alpha")};
  config.tenant_settings[1].reserve_blocks = 7;
  config.tenant_settings[1].isolated = true;
  EXPECT_EQ(MakeAuthenticator(config)->mode(), Authenticator::Mode::kTenants);
  EXPECT_EQ(BoundsOf(config)[0].name, "beta");
  EXPECT_EQ(BoundsOf(config)[1].max_queued_tokens, 5);
  const auto tenants = SchedulerTenantsOf(config.tenant_settings);
  EXPECT_EQ(tenants[0].name, "beta");
  EXPECT_EQ(tenants[0].weight, 2);
  EXPECT_EQ(tenants[1].reserve_blocks, 7);
  EXPECT_TRUE(tenants[1].isolated);
  EXPECT_EQ(tenants[1].max_queued_requests, 3);
}

TEST(TenantWiring, TenantsReadAgainComeInTheOrderOfThoseThatRun) {
  const std::vector<TenantSettings> running = {Tenant("beta"), Tenant("alpha")};
  const auto ordered = InOrderOf(running, {Tenant("alpha", 5), Tenant("beta", 6)});
  ASSERT_TRUE(ordered.ok()) << ordered.status();
  EXPECT_EQ((*ordered)[0].name, "beta");
  EXPECT_EQ((*ordered)[0].weight, 6);
  EXPECT_EQ((*ordered)[1].weight, 5);
}

TEST(TenantWiring, TenantsThatComeGoOrTurnIsolatedTakeARestart) {
  const std::vector<TenantSettings> running = {Tenant("beta"), Tenant("alpha")};
  const auto why = [&](std::vector<TenantSettings> read) {
    return std::string(InOrderOf(running, std::move(read)).status().message());
  };
  EXPECT_THAT(why({Tenant("alpha")}), HasSubstr("tenant beta is no longer"));
  EXPECT_THAT(why({Tenant("alpha"), Tenant("beta"), Tenant("gamma")}),
              HasSubstr("tenant gamma is unknown"));
  TenantSettings isolated = Tenant("alpha");
  isolated.isolated = true;
  EXPECT_THAT(why({Tenant("beta"), isolated}), HasSubstr("tenant alpha, isolated"));
}

// A config that the scheduler accepts, of the two tenants of a file.
struct Scheduling {
  Scheduling() {
    config.tenants = "tenants.conf";
    config.tenant_settings = {Tenant("alpha"), Tenant("beta_2")};
    scheduling.pool_blocks_per_group = {101};
    scheduling.max_model_len = 64;
    scheduling.key_domain.block_size = scheduling.block_size;
    scheduling.tenants = SchedulerTenantsOf(config.tenant_settings);
  }
  std::string Refusal() const { return std::string(CheckScheduling(config, scheduling).message()); }

  ServerConfig config;
  scheduler::SchedulerConfig scheduling;
};

std::string RefusalOf(const std::function<void(scheduler::SchedulerConfig&)>& spoil) {
  Scheduling scheduling;
  spoil(scheduling.scheduling);
  return scheduling.Refusal();
}

TEST(TenantWiring, ARefusedShareNamesTheTenantTheKeyOfItsFileAndTheNumbers) {
  ASSERT_EQ(Scheduling().Refusal(), "");
  EXPECT_EQ(RefusalOf([](auto& c) { c.tenants[1].isolated = true; }),
            "--tenants tenants.conf: tenant beta_2, reserve-blocks: is 0, at least 1 is needed "
            "(beta_2: what it can ever hold)");
  EXPECT_THAT(RefusalOf([](auto& c) { c.tenants[0].weight = 0; }),
              HasSubstr("conf: tenant alpha, weight: is 0, at least 1 "));
  EXPECT_THAT(RefusalOf([](auto& c) { c.tenants[1].max_queued_requests = -1; }),
              HasSubstr("conf: tenant beta_2, max-queued-requests: is -1, at least 0 "));
  EXPECT_THAT(RefusalOf([](auto& c) { c.tenants[1].max_queued_tokens = -1; }),
              HasSubstr("conf: tenant beta_2, max-queued-tokens: is -1, "));
  EXPECT_THAT(RefusalOf([](auto& c) { c.tenants[1].max_running = -1; }),
              HasSubstr("conf: tenant beta_2, max-running: is -1, "));
}

TEST(TenantWiring, AFloorOfNothingNamesTheFlagTheTenantItsWeightAndTheNumbers) {
  EXPECT_EQ(RefusalOf([](auto& c) {
              c.max_num_seqs = 4;
              c.tenants[0].weight = 9;
            }),
            "--tenants tenants.conf: --max-num-seqs: is 4, of which tenant beta_2 with weight 1 of "
            "10 has 0; at least 1 is needed (one of its requests runs)");
  EXPECT_THAT(RefusalOf([](auto& c) { c.max_num_batched_tokens = 60; }),
              HasSubstr("--max-num-batched-tokens: is 60, of which tenant alpha with weight 1 of 2 "
                        "has 30; at least 48 is needed"));
  EXPECT_THAT(
      RefusalOf([](auto& c) { c.max_logit_rows_per_step = 8; }),
      HasSubstr("--max-num-seqs and --max-num-batched-tokens: is 8, of which tenant alpha"));
  EXPECT_THAT(RefusalOf([](auto& c) { c.max_attention_chunks_per_step = 2; }),
              HasSubstr("follows from --max-model-len, --max-num-seqs and "
                        "--max-num-batched-tokens: is 2, of which tenant alpha"));
}

TEST(TenantWiring, ARefusedBoundIsCalledByItsFlag) {
  EXPECT_EQ(RefusalOf([](auto& c) { c.tenants[0].reserve_blocks = 100; }),
            "--tenants tenants.conf: the blocks of --kv-cache-memory: is 101, at least 103 is "
            "needed (the null block, the public ones, all reserves and the watermark)");
  EXPECT_THAT(RefusalOf([](auto& c) { c.max_queued_requests = 5; }),
              HasSubstr("conf: --max-queued-requests: is 5, at least 6 "));
  EXPECT_THAT(RefusalOf([](auto& c) { c.max_queued_tokens = 9; }),
              HasSubstr("conf: --max-queued-tokens: is 9, at least 10 "));
  EXPECT_THAT(RefusalOf([](auto& c) { c.public_blocks = -1; }), HasSubstr("--public-prefixes: is"));
  EXPECT_THAT(RefusalOf([](auto& c) { c.cached_block_ttl_ms = -1; }),
              HasSubstr("--cached-block-ttl in milliseconds: is -1"));
  Scheduling without;
  without.config = {};
  without.scheduling.tenants.clear();
  ASSERT_EQ(without.Refusal(), "");
  without.scheduling.max_model_len = 1;
  EXPECT_EQ(without.Refusal(),
            "--max-model-len: is 1, at least 2 is needed (a prompt and a reply)");
}

}  // namespace
}  // namespace pagoda::server
