#include "scheduler/owner_check.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "scheduler/scheduler.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr std::uint32_t kVocabulary = 100;

// Two requests of two namespaces, one step in. Gives the hand-out record away, to be falsified.
class TwoTenantsBlocks {
 public:
  TwoTenantsBlocks() {
    auto state = std::make_unique<SchedulerState>(config_);
    state_ = state.get();
    scheduler_ = std::make_unique<Scheduler>(std::move(state));
    Add(1, "a", false);
    Add(2, "b", false);
    Add(3, "c", true);
    PAGODA_CHECK(scheduler_->TryPlan(base::Instant()) != nullptr);
  }

  base::BlockId BlockOf(std::size_t place) const {
    return state_->tables.at(state_->running[place], 0);
  }
  const LiveRequest& RequestOf(std::size_t place) const {
    return state_->RequestOf(state_->SequenceIn(state_->running[place]));
  }
  SchedulerState& state() { return *state_; }
  const StepPlan* Plan() { return scheduler_->TryPlan(base::Instant()); }

 private:
  void Add(std::uint64_t id, const char* salt, bool one_request) {
    RequestSketch sketch;
    sketch.id = id;
    sketch.prompt = Ascending(1, 5);
    sketch.salt = salt;
    sketch.fields.max_tokens = 8;
    sketch.one_request_namespace = one_request;
    scheduler_->Add(*MakeRequest(sketch, LimitsFor(config_, kVocabulary), config_, 0));
  }

  static SchedulerConfig MakeConfig() {
    SchedulerConfig config = SmallConfig(30, 4, 4);
    config.max_in_flight = 2;
    return config;
  }

  const SchedulerConfig config_ = MakeConfig();
  SchedulerState* state_ = nullptr;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST(OwnerCheck, ABlockIsReadByItsOwnNamespaceOnly) {
  TwoTenantsBlocks world;
  for (std::size_t reader = 0; reader < 3; ++reader) {
    for (std::size_t owner = 0; owner < 3; ++owner) {
      EXPECT_EQ(MayRead(world.state(), world.RequestOf(reader), world.BlockOf(owner)),
                reader == owner);
    }
  }
  EXPECT_NE(world.Plan(), nullptr);
}

TEST(OwnerCheckDeathTest, ATableWithAnotherNamespacesBlockNeverReachesTheDevice) {
  for (std::size_t victim = 0; victim < 3; ++victim) {
    TwoTenantsBlocks world;
    auto& owners = world.state().block_owners;
    owners[world.BlockOf(victim).value()] = owners[world.BlockOf((victim + 1) % 3).value()];
    EXPECT_DEATH(world.Plan(), "another namespace's block") << victim;
  }
}

TEST(OwnerCheckDeathTest, ABlockThatAnotherSequenceIsWritingIsNeverRead) {
  TwoTenantsBlocks world;
  StepPlan plan;
  // Between two requests of one namespace: the record agrees, the holder does not.
  world.state().block_owners[world.BlockOf(1).value()] =
      world.state().block_owners[world.BlockOf(0).value()];
  plan.work.push_back({.slot = world.state().running[0], .tokens = {}, .appended_blocks = {0, 1}});
  plan.block_appends.push_back({kOnlyGroup, world.BlockOf(1), -1});
  EXPECT_DEATH(CheckOwners(world.state(), plan), "not its sequence's");
}

TEST(OwnerCheckDeathTest, InReleaseBuildsAFalseEntryIsMetOnceInSixtyFourPlans) {
  constexpr std::int32_t kReleaseStride = 64;
  TwoTenantsBlocks world;
  SchedulerState& state = world.state();
  // The first entry of a table; no plan adds it anew.
  state.block_owners[world.BlockOf(0).value()] = BlockOwner(77);
  for (state.num_steps = 1; state.num_steps < kReleaseStride; ++state.num_steps) {
    CheckOwners(state, StepPlan{}, kReleaseStride);
  }
  EXPECT_DEATH(CheckOwners(state, StepPlan{}, kReleaseStride), "another namespace's block");
  state.num_steps = 1;
  EXPECT_DEATH(CheckOwners(state, StepPlan{}, 1), "another namespace's block");
}

}  // namespace
}  // namespace pagoda::scheduler::testing
