#include "server/core/lifecycle.h"

#include <gtest/gtest.h>

#include "base/field_error.h"
#include "server/core/front_desk.h"
#include "server/core/refusal.h"
#include "tests/server/world.h"

namespace pagoda::server {
namespace {

class Recorder final : public HealthListener {
 public:
  explicit Recorder(const Lifecycle& lifecycle) : lifecycle_(lifecycle) {}
  void OnHealthChanged() override { seen += lifecycle_.healthy() ? '+' : '-'; }
  std::string seen;

 private:
  const Lifecycle& lifecycle_;
};

TEST(Lifecycle, MovesForwardsOnlyAndIsHealthyWhileServing) {
  Lifecycle lifecycle;
  Recorder recorder(lifecycle);
  lifecycle.SetListener(&recorder);
  EXPECT_EQ(base::ReasonOf(lifecycle.CheckAccepting()), reason::kLoading);
  EXPECT_TRUE(lifecycle.MoveTo(ServerState::kServing));
  EXPECT_TRUE(lifecycle.CheckAccepting().ok());
  EXPECT_TRUE(lifecycle.MoveTo(ServerState::kDraining));
  EXPECT_FALSE(lifecycle.MoveTo(ServerState::kServing));
  EXPECT_FALSE(lifecycle.MoveTo(ServerState::kDraining));
  EXPECT_EQ(base::ReasonOf(lifecycle.CheckAccepting()), reason::kDraining);
  EXPECT_EQ(recorder.seen, "+-");
}

TEST(Lifecycle, AStallTakesHealthDownForAsLongAsItLastsAndAFailureForGood) {
  Lifecycle lifecycle;
  Recorder recorder(lifecycle);
  lifecycle.SetListener(&recorder);
  lifecycle.MoveTo(ServerState::kServing);
  lifecycle.SetEngineStalled(true);
  lifecycle.SetEngineStalled(true);
  EXPECT_TRUE(lifecycle.CheckAccepting().ok());
  lifecycle.SetEngineStalled(false);
  lifecycle.SetEngineFailed();
  lifecycle.SetEngineStalled(true);
  lifecycle.SetEngineStalled(false);
  EXPECT_EQ(base::ReasonOf(lifecycle.CheckAccepting()), reason::kEngineFailed);
  EXPECT_EQ(recorder.seen, "+-+---");
}

TEST(FrontDesk, HasNoPipelineBeforeOneIsInstalledAndTheServerServes) {
  World world;
  const Authenticator authenticator(Authenticator::Mode::kOneTenant, {});
  FrontDesk desk(authenticator);
  EXPECT_EQ(base::ReasonOf(desk.Accepting().status()), reason::kLoading);
  desk.lifecycle().MoveTo(ServerState::kServing);
  EXPECT_EQ(base::ReasonOf(desk.Accepting().status()), reason::kLoading);
  desk.Install(world.pipeline);
  EXPECT_EQ(*desk.Accepting(), &world.pipeline);
}

}  // namespace
}  // namespace pagoda::server
