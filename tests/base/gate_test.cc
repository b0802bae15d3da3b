#include "base/runtime/gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace pagoda::base {
namespace {

TEST(Gate, RefusesOverTheBoundAndAfterClose) {
  Gate gate(2);
  EXPECT_EQ(gate.TryEnter(2), Gate::Entry::kEntered);
  EXPECT_EQ(gate.TryEnter(), Gate::Entry::kFull);
  gate.Leave();
  gate.Close();
  EXPECT_EQ(gate.TryEnter(), Gate::Entry::kClosed);
  gate.Leave();
}

TEST(Gate, WaitsForTheLastToLeave) {
  Gate gate(1);
  ASSERT_EQ(gate.TryEnter(), Gate::Entry::kEntered);
  std::jthread leaver([&gate] { gate.Leave(); });
  EXPECT_TRUE(gate.WaitUntilEmpty(std::chrono::steady_clock::time_point::max()));
  EXPECT_EQ(gate.num_inside(), 0);
}

TEST(Gate, WaitGivesUpAtItsTime) {
  Gate gate(1);
  ASSERT_EQ(gate.TryEnter(), Gate::Entry::kEntered);
  EXPECT_FALSE(gate.WaitUntilEmpty(std::chrono::steady_clock::now()));
  gate.Leave();
}

TEST(GateDeathTest, DestroyedWhileEnteredAborts) {
  EXPECT_DEATH(
      {
        Gate gate(1);
        (void)gate.TryEnter();
      },
      "inside_ == 0");
}

}  // namespace
}  // namespace pagoda::base
