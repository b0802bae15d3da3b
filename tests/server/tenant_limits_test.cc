#include "server/core/tenant_limits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace pagoda::server {
namespace {

std::vector<scheduler::ModelLimits> Limits(std::int32_t blocks, std::int32_t choices) {
  scheduler::ModelLimits limits;
  limits.capacity_blocks = blocks;
  limits.max_num_seqs = choices;
  return {limits};
}

constexpr base::TenantId kFirst{0};

TEST(TenantLimits, AReplacementHoldsAtOnceAndWaitsForThoseWhoHaveTheOldOnes) {
  TenantLimits limits(Limits(10, 4));
  TenantLimits::Snapshot old = limits.current();
  std::atomic<bool> replaced = false;
  std::jthread operators([&] {
    limits.Replace(Limits(5, 4));
    replaced = true;
  });
  while (limits.current()->Of(kFirst).capacity_blocks != 5) std::this_thread::yield();
  EXPECT_EQ(old->Of(kFirst).capacity_blocks, 10);
  EXPECT_FALSE(replaced.load());
  old.reset();
  operators.join();
  EXPECT_TRUE(replaced.load());
}

TEST(TenantLimits, WhatFitsBothIsTheLowerOfEach) {
  const auto both = Narrower(Limits(10, 2), Limits(7, 4));
  EXPECT_EQ(both.front().capacity_blocks, 7);
  EXPECT_EQ(both.front().max_num_seqs, 2);
}

}  // namespace
}  // namespace pagoda::server
