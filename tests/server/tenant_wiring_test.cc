#include "server/tenant_wiring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pagoda::server
