#include "kernels/emulation/emulated_device.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/emulation/stack_sanitizer.h"

namespace pagoda::kernels::emulation {
namespace {

using cuda::AddArguments;
using cuda::KernelId;
using testing::HasSubstr;

class EmulatedDeviceTest : public testing::Test {
 protected:
  // sum += addend, one row of 8.
  KernelLaunch AddLaunch() {
    arguments_ = {.addend = {addend_.data(), 8}, .inout = {sum_.data(), 8}, .columns = 8};
    return {.kernel = static_cast<std::uint16_t>(KernelId::kAdd),
            .grid = {1, 1, 1},
            .num_threads = cuda::kElementThreads,
            .shared_bytes = 0,
            .arguments = std::as_bytes(std::span(&arguments_, 1))};
  }
  std::string ErrorOf(const KernelLaunch& launch) {
    const auto device = MakeEmulatedDevice({});
    device->Launch(launch, {});
    return std::string(device->Await(device->Record({})).message());
  }

  std::vector<float> addend_ = std::vector<float>(8, 1.0f);
  std::vector<float> sum_ = std::vector<float>(8, 10.0f);
  AddArguments arguments_;
};

TEST_F(EmulatedDeviceTest, NothingHappensBeforeSomeoneAsksAndThenAllOfItInOrder) {
  const auto device = MakeEmulatedDevice({});
  auto memory = device->Allocate(32);
  ASSERT_TRUE(memory.ok());
  device->Launch(AddLaunch(), {});
  arguments_ = {};  // taken by value
  device->Copy(memory->data(), reinterpret_cast<const std::byte*>(sum_.data()), 32, {});
  const Event copied = device->Record({});
  device->Fill(memory->data(), std::byte{0}, 32, {});
  const Event filled = device->Record({});
  EXPECT_EQ(sum_[0], 10.0f);
  EXPECT_FALSE(device->IsDone(copied));
  ASSERT_TRUE(device->Await(copied).ok());
  EXPECT_TRUE(device->IsDone(copied));
  EXPECT_FALSE(device->IsDone(filled));
  float found[8];
  std::memcpy(found, memory->data(), sizeof(found));
  EXPECT_EQ(found[7], 11.0f);
  ASSERT_TRUE(device->Await(filled).ok());
  EXPECT_EQ(memory->data()[31], std::byte{0});
}

TEST_F(EmulatedDeviceTest, AWrongLaunchIsAnErrorThatNamesTheKernelAndStays) {
  KernelLaunch launch = AddLaunch();
  launch.num_threads = 64;
  EXPECT_THAT(ErrorOf(launch), HasSubstr("launch of Add: 64 threads; it was built for 128"));
  launch = AddLaunch();
  launch.grid[1] = 0;
  EXPECT_THAT(ErrorOf(launch), HasSubstr("a grid without a CTA"));
  launch = AddLaunch();
  launch.grid[2] = 70'000;
  EXPECT_THAT(ErrorOf(launch), HasSubstr("at most 65535"));
  launch = AddLaunch();
  launch.shared_bytes = 16;
  EXPECT_THAT(ErrorOf(launch), HasSubstr("16 bytes of shared memory; it needs 0"));
  launch = AddLaunch();
  launch.arguments = launch.arguments.first(8);
  EXPECT_THAT(ErrorOf(launch), HasSubstr("8 bytes of arguments"));
  launch = AddLaunch();
  launch.kernel = cuda::kNumKernels;
  EXPECT_THAT(ErrorOf(launch), HasSubstr("which is none"));

  const auto device = MakeEmulatedDevice({});
  launch = AddLaunch();
  launch.grid[0] = 0;
  device->Launch(launch, {});
  device->Launch(AddLaunch(), {});
  EXPECT_FALSE(device->Await(device->Record({})).ok());
  EXPECT_FALSE(device->Await(device->Record({})).ok());
  EXPECT_EQ(sum_[0], 10.0f);
}

TEST_F(EmulatedDeviceTest, AKernelThatNeedsMoreSharedMemoryThanTheDeviceHasIsRefused) {
  const auto device = MakeEmulatedDevice({.schedule = {}, .max_shared_bytes = 16 * 1024});
  const cuda::GemmArguments arguments;
  device->Launch({.kernel = static_cast<std::uint16_t>(KernelId::kGemmFewRows),
                  .grid = {1, 1, 1},
                  .num_threads = cuda::GemmShape::kThreads,
                  .shared_bytes = cuda::kGemmFewRows.SharedBytes(),
                  .arguments = std::as_bytes(std::span(&arguments, 1))},
                 {});
  EXPECT_THAT(std::string(device->Await(device->Record({})).message()),
              HasSubstr("the device has 16384"));
}

// The ninth of eight numbers: a NaN to who reads it, an error to who writes it; to
// AddressSanitizer both are reports.
class NinthOfEight : public EmulatedDeviceTest {
 protected:
  absl::Status AddNine(std::int64_t num_addends, std::int64_t num_sums) {
    const auto device = MakeEmulatedDevice({});
    auto addends = device->Allocate(num_addends * 4), sums = device->Allocate(num_sums * 4);
    const std::vector<float> ones(16, 1.0f);
    const auto* const source = reinterpret_cast<const std::byte*>(ones.data());
    device->Copy(addends->data(), source, num_addends * 4, {});
    device->Copy(sums->data(), source, num_sums * 4, {});
    KernelLaunch launch = AddLaunch();
    arguments_ = {.addend = {reinterpret_cast<float*>(addends->data()), 9},
                  .inout = {reinterpret_cast<float*>(sums->data()), 9},
                  .columns = 9};
    device->Launch(launch, {});
    const absl::Status done = device->Await(device->Record({}));
    if (num_sums > 8) std::memcpy(&ninth_, sums->data() + 32, 4);
    return done;
  }
  float ninth_ = 0;
};

TEST_F(NinthOfEight, AKernelThatReadsOneElementPastTheEndIsFound) {
  ASSERT_TRUE(AddNine(9, 9).ok());
  EXPECT_EQ(ninth_, 2.0f);
  if (kForbids) {
    EXPECT_DEATH((void)AddNine(8, 9), "use-after-poison");
    return;
  }
  ASSERT_TRUE(AddNine(8, 9).ok());
  EXPECT_TRUE(std::isnan(ninth_)) << ninth_;
}

TEST_F(NinthOfEight, AKernelThatWritesOneElementPastTheEndIsFound) {
  if (kForbids) {
    EXPECT_DEATH((void)AddNine(9, 8), "use-after-poison");
    return;
  }
  EXPECT_THAT(std::string(AddNine(9, 8).message()),
              HasSubstr("kernel Add: it wrote past the end of 32 bytes"));
}

TEST(EmulatedDevice, MemoryThatTheSystemRefusesIsAnErrorWithItsBytes) {
  const auto device = MakeEmulatedDevice({});
  const absl::Status refused = device->Allocate(std::int64_t{1} << 60).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("refused 1152921504606846976 bytes"));
}

TEST(EmulatedDeviceDeathTest, MemoryFreedWithWorkPendingAborts) {
  const auto device = MakeEmulatedDevice({});
  EXPECT_DEATH(
      {
        auto memory = device->Allocate(32);
        device->Fill(memory->data(), std::byte{1}, 32, {});
        *memory = DeviceMemory();
      },
      "work pending");
}

TEST(EmulatedDeviceDeathTest, APageAfterMemoryFaults) {
  const auto device = MakeEmulatedDevice({});
  auto memory = device->Allocate(4096);
  ASSERT_TRUE(memory.ok());
  std::byte* const after = memory->data() + 4096;
  EXPECT_DEATH(std::memset(after, 1, 1), "");
}

}  // namespace
}  // namespace pagoda::kernels::emulation
