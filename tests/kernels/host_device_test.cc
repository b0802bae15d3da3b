#include <algorithm>
#include <cstdint>
#include <span>

#include "gtest/gtest.h"
#include "kernels/device.h"

namespace pagoda::kernels {
namespace {

TEST(HostDevice, MemoryIsZeroedAlignedAndMoves) {
  const auto device = MakeHostDevice();
  auto allocated = device->Allocate(10'000);
  ASSERT_TRUE(allocated.ok());
  DeviceMemory memory = *std::move(allocated);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0u);
  EXPECT_EQ(memory.bytes(), 10'000);
  const std::span<std::byte> bytes(memory.data(), 10'000);
  EXPECT_TRUE(
      std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
  DeviceMemory moved = std::move(memory);
  EXPECT_EQ(moved.data(), bytes.data());
  EXPECT_EQ(memory.data(), nullptr);  // NOLINT(bugprone-use-after-move): what a move leaves
}

TEST(HostDevice, FillAndCopyAreDoneAfterTheEvent) {
  const auto device = MakeHostDevice();
  auto memory = device->Allocate(64);
  ASSERT_TRUE(memory.ok());
  device->Fill(memory->data(), std::byte{7}, 16, {});
  device->Copy(memory->data() + 32, memory->data() + 8, 16, {});
  const Event event = device->Record({});
  ASSERT_TRUE(device->Await(event).ok());
  EXPECT_TRUE(device->IsDone(event));
  EXPECT_TRUE(device->is_host());
  EXPECT_EQ(memory->data()[32], std::byte{7});
  EXPECT_EQ(memory->data()[39], std::byte{7});
  EXPECT_EQ(memory->data()[40], std::byte{0});
}

TEST(HostDevice, MoreThanThereIsIsRefusedWithTheSize) {
  const auto device = MakeHostDevice();
  const auto refused = device->Allocate(std::int64_t{1} << 60);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().ToString().find("1152921504606846976"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::kernels
