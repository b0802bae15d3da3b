#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/field_error.h"
#include "tests/scheduler/token_mill.h"
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

// The weights change what a tenant gets of a step from the next step on.
TEST(Tenants, NewWeightsMoveTheFloors) {
  SchedulerConfig config = SmallConfig(80, 4, 4);
  config.tenants = {{.name = "a"}, {.name = "b", .reserve_blocks = 20, .isolated = true}};
  EXPECT_EQ(Scheduler::MaxChoices(config, base::TenantId(1)), 2);
  TokenMill mill(config);
  mill.Add(1, 1, 60, 2);
  ASSERT_TRUE(mill.Step());
  EXPECT_EQ(mill.state().running.size(), 1u);
  EXPECT_EQ(mill.state().SequenceIn(mill.state().running[0]).num_computed, 8);  // of 10
  std::vector<TenantConfig> tenants = config.tenants;
  tenants[1].weight = 3;
  ASSERT_TRUE(mill.scheduler().Reconfigure(tenants).ok());
  ASSERT_TRUE(mill.Step());
  EXPECT_FALSE(mill.scheduler().is_reconfiguring());
  EXPECT_EQ(mill.state().SequenceIn(mill.state().running[0]).num_computed, 20);  // 12 of 15
  while (mill.Step()) {
  }
}

// A flood cannot keep a larger reserve from coming into force: what would not fit it waits.
TEST(Tenants, ANewReserveComesIntoForceUnderAFlood) {
  SchedulerConfig config = SmallConfig(81, 4, 8);
  config.tenants = {{.name = "a"}, {.name = "b"}};
  TokenMill mill(config);
  std::vector<TenantConfig> tenants = config.tenants;
  tenants[1].reserve_blocks = 50;
  base::TokenId next = 1;
  int steps_until_in_force = -1;
  for (int step = 0; step < 400; ++step) {
    while (mill.state().queues[0].size() < 8) mill.Add(0, next += 50, 30, 10);
    if (step == 100) {
      ASSERT_TRUE(mill.scheduler().Reconfigure(tenants).ok());
    }
    ASSERT_TRUE(mill.Step());
    mill.scheduler().CheckInvariants();
    if (step >= 100 && steps_until_in_force < 0 && !mill.scheduler().is_reconfiguring()) {
      steps_until_in_force = step - 100;
    }
  }
  EXPECT_GT(steps_until_in_force, 0);
  EXPECT_LT(steps_until_in_force, 100);
  EXPECT_EQ(mill.state().pool.Capacity(base::TenantId(0)), 30);
}

// Each refusal names the key and both numbers.
TEST(Tenants, AConfigThatCouldHangOrBreakAPromiseIsRefused) {
  const auto refusal = [](auto change) {
    SchedulerConfig config = SmallConfig(81, 4, 8);
    config.max_queued_tokens = 1'000;
    config.tenants = {{.name = "a"}, {.name = "b"}};
    change(config);
    const absl::Status status = Scheduler::Create(config).status();
    return base::FieldOf(status) + ": " + std::string(status.message());
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_EQ(refusal([](SchedulerConfig&) {}), ": ");
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[1].weight = 0; }),
              AllOf(HasSubstr("tenants[1].weight: "), HasSubstr("is 0, at least 1 is needed")));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[1].reserve_blocks = -1; }),
              HasSubstr("tenants[1].reserve_blocks: "));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[1].isolated = true; }),
              AllOf(HasSubstr("tenants[1].reserve_blocks: "), HasSubstr("is 0, at least 1")));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[1].max_running = -1; }),
              HasSubstr("tenants[1].max_running: "));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[0].reserve_blocks = 79; }),
              AllOf(HasSubstr("pool_blocks: "), HasSubstr("is 81, at least 82 is needed")));
  EXPECT_EQ(refusal([](SchedulerConfig& c) { c.tenants[0].reserve_blocks = 78; }), ": ");
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[0].weight = 8; }),
              AllOf(HasSubstr("max_num_seqs: is 8, of which tenant b with weight 1 of 9 has 0"),
                    HasSubstr("at least 1")));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_num_batched_tokens = 15; }),
              AllOf(HasSubstr("max_num_batched_tokens: is 15, of which"), HasSubstr("has 7"),
                    HasSubstr("at least 8")));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_logit_rows_per_step = 7; }),
              AllOf(HasSubstr("max_logit_rows_per_step: is 7, of which"), HasSubstr("at least 4")));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_attention_chunks_per_step = 9; }),
              AllOf(HasSubstr("max_attention_chunks_per_step: is 9, of which"),
                    HasSubstr("has 4; at least 10")));
  EXPECT_EQ(refusal([](SchedulerConfig& c) { c.max_attention_chunks_per_step = 20; }), ": ");
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[0].max_queued_requests = 40; }),
              AllOf(HasSubstr("max_queued_requests: "), HasSubstr("is 64, at least 72")));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tenants[0].max_queued_tokens = 501; }),
              AllOf(HasSubstr("max_queued_tokens: "), HasSubstr("is 1000, at least 1001")));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_queued_requests = 1; }),
              HasSubstr("max_queued_requests: "));
}

}  // namespace
}  // namespace pagoda::scheduler::testing
