#include "kernels/emulation/emulator.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::kernels::emulation {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kAllLanes = ~0u;
constexpr Order kOrders[] = {Order::kForward, Order::kReverse, Order::kRandom, Order::kGreedy,
                             Order::kGreedyReverse};

struct Arguments {
  std::uint32_t* out = nullptr;
  const std::uint32_t* in = nullptr;
};

// The lane's neighbour at `distance`, by exclusive or.
std::uint32_t Shuffle(std::uint32_t value, std::uint32_t distance,
                      CallSite site = CallSite::Here()) {
  LaneData brought;
  brought.words[0] = value;
  brought.words[1] = distance;
  return MeetWarp(WarpOperation::kShuffle, kAllLanes, site, brought,
                  [](const WarpData& in, WarpData& out) {
                    for (std::uint32_t lane = 0; lane < 32; ++lane) {
                      out.lanes[lane].words[0] = in.lanes[lane ^ in.lanes[lane].words[1]].words[0];
                    }
                  })
      .words[0];
}

const Arguments& ArgumentsOf(const void* arguments) {
  return *static_cast<const Arguments*>(arguments);
}

class EmulatorTest : public testing::Test {
 protected:
  absl::Status Run(EmulatedKernel kernel, std::uint32_t num_threads, std::size_t shared_bytes = 0,
                   const Schedule& schedule = {}, Index3 grid = {}) {
    return emulator_.Run({.kernel = kernel,
                          .arguments = &arguments_,
                          .grid = grid,
                          .num_threads = num_threads,
                          .shared_bytes = shared_bytes,
                          .name = "tested"},
                         schedule);
  }
  std::string FaultOf(EmulatedKernel kernel, std::uint32_t num_threads,
                      std::size_t shared_bytes = 0) {
    return std::string(Run(kernel, num_threads, shared_bytes).message());
  }

  Emulator emulator_;
  std::array<std::uint32_t, 4096> in_ = {}, out_ = {};
  Arguments arguments_{out_.data(), in_.data()};
};

TEST_F(EmulatorTest, EveryThreadOfEveryCtaRunsOnceAtItsPlace) {
  for (const int resident : {1, 2}) {
    for (const Order order : kOrders) {
      out_.fill(0);
      ASSERT_TRUE(Run(
                      [](const void* arguments) {
                        const ThreadPlace& self = Self();
                        const std::uint32_t cta =
                            self.cta.x + self.grid.x * (self.cta.y + self.grid.y * self.cta.z);
                        ++ArgumentsOf(arguments).out[cta * self.num_threads + self.thread];
                      },
                      70, 0, {.order = order, .resident_ctas = resident}, {3, 2, 2})
                      .ok());
      for (std::uint32_t i = 0; i < 12 * 70; ++i) ASSERT_EQ(out_[i], 1u) << i;
      EXPECT_EQ(out_[12 * 70], 0u);
    }
  }
}

TEST_F(EmulatorTest, ABarrierMakesEarlierWritesVisibleToTheWholeCtaUnderEverySchedule) {
  for (std::uint32_t i = 0; i < 512; ++i) in_[i] = i * i;
  for (const int resident : {1, 2}) {
    for (const Order order : kOrders) {
      out_.fill(0);
      ASSERT_TRUE(Run(
                      [](const void* arguments) {
                        const ThreadPlace& self = Self();
                        auto* const shared = reinterpret_cast<std::uint32_t*>(self.shared);
                        const std::uint32_t base = self.cta.x * self.num_threads;
                        shared[self.thread] = ArgumentsOf(arguments).in[base + self.thread];
                        MeetCta(CallSite::Here());
                        ArgumentsOf(arguments).out[base + self.thread] =
                            shared[self.num_threads - 1 - self.thread];
                      },
                      128, 512, {.order = order, .resident_ctas = resident}, {4, 1, 1})
                      .ok());
      for (std::uint32_t i = 0; i < 512; ++i) {
        ASSERT_EQ(out_[i], in_[i / 128 * 128 + 127 - i % 128]);
      }
    }
  }
}

#if !defined(PAGODA_WATCHES_RACES)  // where it is a report
// What the same kernel gives without its barrier: not what it should, under some schedule.
TEST_F(EmulatorTest, AMissingBarrierShowsBecauseSharedMemoryHoldsNans) {
  ASSERT_TRUE(Run(
                  [](const void* arguments) {
                    const ThreadPlace& self = Self();
                    auto* const shared = reinterpret_cast<std::uint32_t*>(self.shared);
                    shared[self.thread] = 1;
                    ArgumentsOf(arguments).out[self.thread] = shared[63 - self.thread];
                  },
                  64, 256)
                  .ok());
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(out_[0])));
}
#endif

TEST_F(EmulatorTest, LanesTradeValuesAgainAndAgainUnderEverySchedule) {
  for (const Order order : kOrders) {
    ASSERT_TRUE(Run(
                    [](const void* arguments) {
                      std::uint32_t value = Self().thread;
                      for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
                        value += Shuffle(value, distance);
                      }
                      ArgumentsOf(arguments).out[Self().thread] = value;
                    },
                    96, 0, {.order = order})
                    .ok());
    for (std::uint32_t i = 0; i < 96; ++i) {
      EXPECT_EQ(out_[i], 31u * 16u + i / 32 * 32 * 32);
    }
  }
}

TEST_F(EmulatorTest, LanesThatMeetAtDifferentLinesAreAFaultNamedWithThePlace) {
  const std::string fault = FaultOf(
      [](const void*) {
        // Equal but for their lines.  NOLINTNEXTLINE(bugprone-branch-clone)
        if (Self().thread < 16) {
          Shuffle(1, 1);
        } else {
          Shuffle(1, 1);
        }
      },
      32);
  EXPECT_THAT(fault, HasSubstr("kernel tested"));
  EXPECT_THAT(fault, HasSubstr("different operations, masks or places"));
  EXPECT_THAT(fault, HasSubstr("emulator_test.cc:"));
  EXPECT_THAT(fault, HasSubstr("thread 16 of CTA 0, 0, 0"));
}

TEST_F(EmulatorTest, LanesThatComeWithDifferentMasksOrOperationsAreAFault) {
  EXPECT_THAT(FaultOf(
                  [](const void*) {
                    const std::uint32_t mask = Self().thread < 16 ? kAllLanes : 0xffff0000u;
                    MeetWarp(WarpOperation::kSync, mask, {"kernel", 1}, {},
                             [](const WarpData&, WarpData&) {});
                  },
                  32),
              HasSubstr("different operations, masks or places"));
  EXPECT_THAT(FaultOf(
                  [](const void*) {
                    const WarpOperation operation =
                        Self().thread == 3 ? WarpOperation::kVote : WarpOperation::kSync;
                    MeetWarp(operation, kAllLanes, {"kernel", 1}, {},
                             [](const WarpData&, WarpData&) {});
                  },
                  32),
              HasSubstr("different operations, masks or places"));
  EXPECT_THAT(FaultOf(
                  [](const void*) {
                    MeetWarp(WarpOperation::kSync, 0xfffeu, {"kernel", 1}, {},
                             [](const WarpData&, WarpData&) {});
                  },
                  32),
              HasSubstr("not in the mask"));
}

TEST_F(EmulatorTest, ADeadlockIsReportedWithWhoWaitsWhere) {
  const std::string fault = FaultOf(
      [](const void*) {
        if (Self().thread % 32 == 7) return;
        if (Self().thread < 32) Shuffle(1, 1);
        MeetCta({"some/kernel.cuh", 42});
      },
      64);
  EXPECT_THAT(fault, HasSubstr("no thread can run"));
  EXPECT_THAT(fault, HasSubstr("31 threads wait for their warp at emulator_test.cc:"));
  EXPECT_THAT(fault, HasSubstr("31 threads wait for their CTA at kernel.cuh:42"));
}

TEST_F(EmulatorTest, BarriersAtDifferentLinesAreAFault) {
  EXPECT_THAT(FaultOf([](const void*) { MeetCta({"kernel", Self().thread == 40 ? 1 : 2}); }, 64),
              HasSubstr("different places"));
}

// Hardware lets the others go on; so must we, or kernels would be forced to idle at the end.
TEST_F(EmulatorTest, AThreadThatReturnedIsNotWaitedForAtABarrier) {
  ASSERT_TRUE(Run(
                  [](const void* arguments) {
                    if (Self().thread >= 40) return;
                    MeetCta(CallSite::Here());
                    ArgumentsOf(arguments).out[Self().thread] = 1;
                  },
                  64)
                  .ok());
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out_[i], i < 40 ? 1u : 0u);
}

TEST_F(EmulatorTest, AnEmulatorWorksOnAfterAFault) {
  EXPECT_FALSE(Run([](const void*) { MeetCta({"kernel", Self().thread == 0 ? 1 : 2}); }, 64).ok());
  EXPECT_TRUE(Run([](const void*) { MeetCta({"kernel", 1}); }, 64).ok());
}

alignas(16) constinit std::array<std::uint32_t, 8> copied = {1, 2, 3, 4, 5, 6, 7, 8};

const std::byte* Source(std::size_t index) {
  return reinterpret_cast<const std::byte*>(&copied[index]);
}

// out[0]: before the wait; [1], [2]: after it, of the group waited for and of the one after it.
void CopyTwoGroups(const void* arguments) {
  const Arguments& to = ArgumentsOf(arguments);
  const auto* const shared = reinterpret_cast<const std::uint32_t*>(Self().shared);
  CopyLater(Self().shared, Source(0), CallSite::Here());
  CommitCopies();
  CopyLater(Self().shared + 16, Source(4), CallSite::Here());
  CommitCopies();
  to.out[0] = shared[0];
  WaitForCopies(1);
  to.out[1] = shared[0];
  to.out[2] = shared[4];
  WaitForCopies(0);
  to.out[3] = shared[4];
}

TEST_F(EmulatorTest, ALateCopyIsUnknownUntilItsGroupWasWaitedFor) {
  ASSERT_TRUE(Run(CopyTwoGroups, 1, 32, {.copies = CopyTime::kLate}).ok());
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(out_[0])));
  EXPECT_EQ(out_[1], 1u);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(out_[2])));
  EXPECT_EQ(out_[3], 5u);
}

TEST_F(EmulatorTest, AnEarlyCopyOverwritesAtOnce) {
  ASSERT_TRUE(Run(CopyTwoGroups, 1, 32, {.copies = CopyTime::kEarly}).ok());
  EXPECT_EQ(out_[0], 1u);
  EXPECT_EQ(out_[2], 5u);
  EXPECT_EQ(emulator_.counters().async_bytes, 32u);
}

TEST_F(EmulatorTest, ACopyOfNothingZeroFillsAndReadsNoByte) {
  ASSERT_TRUE(Run(
                  [](const void* arguments) {
                    CopyLater(Self().shared, nullptr, CallSite::Here());
                    CommitCopies();
                    WaitForCopies(0);
                    std::memcpy(ArgumentsOf(arguments).out, Self().shared, 16);
                  },
                  1, 16)
                  .ok());
  EXPECT_EQ(out_[3], 0u);
  EXPECT_EQ(emulator_.counters().async_bytes, 0u);
}

TEST_F(EmulatorTest, WrongCopiesAreFaults) {
  EXPECT_THAT(
      FaultOf([](const void*) { CopyLater(Self().shared + 8, Source(0), {"kernel", 1}); }, 1, 32),
      HasSubstr("not aligned"));
  EXPECT_THAT(
      FaultOf([](const void*) { CopyLater(Self().shared, Source(1), {"kernel", 1}); }, 1, 32),
      HasSubstr("multiple of 16"));
  EXPECT_THAT(
      FaultOf([](const void*) { CopyLater(Self().shared + 32, Source(0), {"kernel", 1}); }, 1, 32),
      HasSubstr("outside"));
  EXPECT_THAT(
      FaultOf([](const void*) { CopyLater(Self().shared, Source(0), {"kernel", 1}); }, 1, 32),
      HasSubstr("returned with asynchronous copies under way"));
}

}  // namespace
}  // namespace pagoda::kernels::emulation
