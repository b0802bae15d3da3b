#include "server/core/admission_gate.h"

#include <gtest/gtest.h>

#include "base/field_error.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

constexpr base::TenantId kFirst{0};
constexpr base::TenantId kSecond{1};

TEST(AdmissionGate, ATenantThatFillsItsShareLeavesTheOthersAlone) {
  AdmissionGate gate({{"one", 2, 100}, {"two", 1, 100}});
  auto a = gate.TryEnter(kFirst, 1);
  auto b = gate.TryEnter(kFirst, 1);
  EXPECT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(base::ReasonOf(gate.TryEnter(kFirst, 1).status()), reason::kQueueFull);
  EXPECT_TRUE(gate.TryEnter(kSecond, 1).ok());
  EXPECT_EQ(gate.num_refused(kFirst), 1);
  EXPECT_EQ(gate.num_refused(kSecond), 0);
}

TEST(AdmissionGate, NewBoundsHoldForWhoComesAndNotForWhoIsInside) {
  AdmissionGate gate({{"one", 2, 100}, {"two", 1, 100}});
  auto a = gate.TryEnter(kFirst, 1);
  auto b = gate.TryEnter(kFirst, 1);
  gate.SetBounds({{"one", 1, 100}, {"two", 2, 100}});
  EXPECT_EQ(gate.num_inside(), 2);
  const absl::Status refused = gate.TryEnter(kFirst, 1).status();
  EXPECT_EQ(TenantOf(refused), "one");
  EXPECT_NE(refused.message().find("2 of 1 requests"), absl::string_view::npos);
  a->Release();
  EXPECT_FALSE(gate.TryEnter(kFirst, 1).ok());
  b->Release();
  EXPECT_TRUE(gate.TryEnter(kFirst, 1).ok());
  auto c = gate.TryEnter(kSecond, 1);
  EXPECT_TRUE(gate.TryEnter(kSecond, 1).ok());
}

TEST(AdmissionGate, GivesBackEverythingOnceHoweverThePermitMoves) {
  AdmissionGate gate({{"one", 1, 10}});
  {
    AdmissionGate::Permit moved;
    {
      auto permit = gate.TryEnter(kFirst, 10);
      ASSERT_TRUE(permit.ok());
      moved = *std::move(permit);
    }
    EXPECT_EQ(gate.num_inside(), 1);
    EXPECT_EQ(gate.num_queued_tokens(), 10);
    moved.ShrinkTokens(4);
    EXPECT_EQ(gate.num_queued_tokens(), 4);
    moved.ReleaseTokens();
    EXPECT_EQ(gate.num_queued_tokens(), 0);
    EXPECT_EQ(gate.num_inside(), 1);
    moved.Release();
    EXPECT_FALSE(moved.held());
  }
  EXPECT_EQ(gate.num_inside(), 0);
  EXPECT_TRUE(gate.TryEnter(kFirst, 10).ok());
}

TEST(AdmissionGate, ARequestOverTheTokenBoundRunsAloneInsteadOfNever) {
  AdmissionGate gate({{"one", 5, 10}});
  auto big = gate.TryEnter(kFirst, 1000);
  EXPECT_TRUE(big.ok());
  EXPECT_FALSE(gate.TryEnter(kFirst, 1).ok());
}

TEST(AdmissionGate, ClosedItRefusesAsDrainingAndEmptiesOut) {
  AdmissionGate gate({{"one", 5, 10}});
  auto inside = gate.TryEnter(kFirst, 1);
  gate.Close();
  EXPECT_EQ(base::ReasonOf(gate.TryEnter(kFirst, 1).status()), reason::kDraining);
  EXPECT_FALSE(gate.WaitUntilEmpty(base::Instant::FromNanos(0)));
  inside->Release();
  EXPECT_TRUE(gate.WaitUntilEmpty(base::Instant::FromNanos(0)));
}

TEST(AdmissionGateDeathTest, ADestroyedGateWithSomeoneInsideIsOurBug) {
  EXPECT_DEATH(
      {
        AdmissionGate::Permit outlives;
        AdmissionGate gate({{"one", 5, 10}});
        outlives = *gate.TryEnter(kFirst, 1);
        gate.~AdmissionGate();
      },
      "num_inside_ == 0");
}

}  // namespace
}  // namespace pagoda::server
