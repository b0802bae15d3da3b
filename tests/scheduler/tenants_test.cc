#include <gtest/gtest.h>

#include "base/field_error.h"
#include "tests/scheduler/world.h"

namespace pagoda::scheduler::testing {
namespace {

TEST(Tenants, EachHasItsReserveAndAllOfCommonButAnIsolatedOneOnlyItsReserve) {
  SchedulerConfig config = SmallConfig(31, 4, 4);
  EXPECT_EQ(Scheduler::CapacityBlocks(config), 30);
  config.tenants = {{.name = "a", .reserve_blocks = 10},
                    {.name = "b", .reserve_blocks = 5, .isolated = true}};
  EXPECT_EQ(Scheduler::CapacityBlocks(config, base::TenantId(0)), 25);
  EXPECT_EQ(Scheduler::CapacityBlocks(config, base::TenantId(1)), 5);
}

TEST(Tenants, RequestsOfTwoTenantsRunSideBySideAndShareNothing) {
  SchedulerConfig config = SmallConfig(31, 4, 4);
  config.tenants = {{.name = "a"}, {.name = "b", .reserve_blocks = 5}};
  World world(config);
  world.Run("add a prompt=8 max=2\n run\n add b prompt=8 max=2 tenant=1\n run\n");
  EXPECT_EQ(world.ended("b").receipt.cached_tokens, 0);
  const TenantStats second = world.scheduler().tenant_stats(base::TenantId(1));
  EXPECT_EQ(second.num_admitted, 1);
  EXPECT_EQ(second.prompt_tokens, 8);
  EXPECT_EQ(second.generated_tokens, 2);
  EXPECT_EQ(second.blocks_cached, 3);  // two full ones, and the partial last one as a copy source
}

TEST(Tenants, ANewReserveTakesEffectOnceWhatIsHeldAndWhatWasLetInFitsIt) {
  SchedulerConfig config = SmallConfig(13, 4, 4);
  config.tenants = {{.name = "a"}, {.name = "b"}};
  auto scheduler = *Scheduler::Create(config);
  std::vector<TenantConfig> tenants = config.tenants;
  tenants[1].reserve_blocks = 12;
  EXPECT_EQ(base::FieldOf(scheduler->Reconfigure(tenants)), "pool_blocks");
  tenants[1].reserve_blocks = 11;
  RequestSketch sketch;
  sketch.id = 1;
  sketch.prompt = Ascending(1, 8);
  sketch.fields.max_tokens = 3;
  scheduler->Add(*MakeRequest(sketch, LimitsFor(config, 100), config, 0));
  ASSERT_TRUE(scheduler->Reconfigure(tenants).ok());
  EXPECT_NE(scheduler->TryPlan(base::Instant()), nullptr);
  EXPECT_TRUE(scheduler->is_reconfiguring());
  scheduler->Cancel(base::RequestId(1), FinishReason::kCancelled);
  scheduler->Fail(base::JobId(1));
  scheduler->Fence(base::JobId(1));
  EXPECT_EQ(scheduler->TryPlan(base::Instant()), nullptr);
  EXPECT_FALSE(scheduler->is_reconfiguring());
  tenants.pop_back();
  EXPECT_EQ(base::FieldOf(scheduler->Reconfigure(tenants)), "tenants");
}

}  // namespace
}  // namespace pagoda::scheduler::testing
