#include "kernels/emulation/fiber_switch.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::kernels::emulation {
namespace {

struct Pair {
  void* main = nullptr;
  void* fiber = nullptr;
  std::vector<int> seen;
  std::uintptr_t misalignment = 1;
};
Pair* pair = nullptr;

void Body() {
  // The convention: 16-aligned before a call, so a local of that alignment is where it should be.
  alignas(16) std::byte local[16] = {};
  pair->misalignment = reinterpret_cast<std::uintptr_t>(&local) % 16;
  for (int i = 0;; ++i) {
    pair->seen.push_back(i);
    PagodaSwitchStack(&pair->fiber, pair->main);
  }
}

TEST(FiberSwitch, TwoStacksTakeTurnsAndKeepTheirLocals) {
  Pair made;
  pair = &made;
  alignas(16) static std::byte stack[64 * 1024];
  made.fiber = FreshStack(stack + sizeof(stack), Body);
  for (int turn = 0; turn < 5; ++turn) {
    PagodaSwitchStack(&made.main, made.fiber);
    made.seen.push_back(100 + turn);
  }
  EXPECT_EQ(made.seen, (std::vector<int>{0, 100, 1, 101, 2, 102, 3, 103, 4, 104}));
  EXPECT_EQ(made.misalignment, 0u);
}

TEST(FiberSwitchDeathTest, AStackMustEndAligned) {
  static std::byte stack[128];
  std::byte* end = stack + 64;
  while (reinterpret_cast<std::uintptr_t>(end) % 16 != 8) ++end;
  EXPECT_DEATH(FreshStack(end, Body), "16");
}

}  // namespace
}  // namespace pagoda::kernels::emulation
