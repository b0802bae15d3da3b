#include "kernels/cuda/ops/upload_ring.h"

#include <numeric>

#include "gtest/gtest.h"
#include "kernels/emulation/emulated_device.h"

namespace pagoda::kernels::cuda {
namespace {

using Numbers = std::vector<std::int32_t>;

// The device does its copies late, so a half that were written again too early would show.
TEST(UploadRing, EveryListArrivesThoughTheRingGoesRoundManyTimes) {
  const auto device = emulation::MakeEmulatedDevice({});
  {
    auto memory = device->Allocate(64 * 1024);
    ASSERT_TRUE(memory.ok());
    auto ring = UploadRing::Create(*device, 256);
    ASSERT_TRUE(ring.ok());
    for (std::int32_t i = 0; i < 100; ++i) {
      Numbers list(static_cast<std::size_t>(1 + i % 50));
      std::iota(list.begin(), list.end(), 1000 * i);
      const auto bytes = static_cast<std::int64_t>(list.size() * sizeof(std::int32_t));
      const std::int32_t* const there = ring->Put(std::span<const std::int32_t>(list), {});
      device->Copy(memory->data() + i * 256, reinterpret_cast<const std::byte*>(there), bytes, {});
      list.assign(list.size(), -1);
    }
    ASSERT_TRUE(device->Await(device->Record({})).ok());
    for (std::int32_t i = 0; i < 100; ++i) {
      const auto* const found = reinterpret_cast<const std::int32_t*>(memory->data() + i * 256);
      for (std::int32_t at = 0; at < 1 + i % 50; ++at) ASSERT_EQ(found[at], 1000 * i + at);
    }
  }
}

TEST(UploadRing, WhatFollowsAListIsNoneOfAnother) {
  const auto device = emulation::MakeEmulatedDevice({});
  auto ring = UploadRing::Create(*device, 512);
  ASSERT_TRUE(ring.ok());
  for (const std::size_t length : {1u, 12u, 16u, 31u}) {
    const Numbers list(length, 7);
    const std::int32_t* const there = ring->Put(std::span<const std::int32_t>(list), {});
    ASSERT_TRUE(device->Await(device->Record({})).ok());
    EXPECT_EQ(there[length - 1], 7);
    for (std::size_t past = length; past < length + 4; ++past) EXPECT_EQ(there[past], -1);
  }
}

TEST(UploadRingDeathTest, AListThatNeverFitsAborts) {
  const auto device = emulation::MakeEmulatedDevice({});
  auto ring = UploadRing::Create(*device, 64);
  ASSERT_TRUE(ring.ok());
  const Numbers list(13);
  EXPECT_DEATH(ring->Put(std::span<const std::int32_t>(list), {}), "too long");
}

}  // namespace
}  // namespace pagoda::kernels::cuda
