// What counts as a race between the threads of a kernel, and what does not. Each kernel here has
// the same outcome in every order, so nothing but the thread sanitizer can tell.
#include "kernels/emulation/race_watch.h"

#include <array>

#include "gtest/gtest.h"
#include "kernels/emulation/emulator.h"

// The first report ends the process.
extern "C" const char* __tsan_default_options() { return "halt_on_error=1"; }

namespace pagoda::kernels::emulation {
namespace {

static_assert(kWatchesRaces);
constexpr int kExitOfAReport = 66;

struct Arguments {
  std::uint32_t* out;
};
std::uint32_t* OutOf(const void* arguments) {
  return static_cast<const Arguments*>(arguments)->out;
}
std::uint32_t* Shared() { return reinterpret_cast<std::uint32_t*>(Self().shared); }

class RaceWatchTest : public testing::Test {
 protected:
  RaceWatchTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  absl::Status TryRun(EmulatedKernel kernel, Index3 grid = {}, int resident_ctas = 1) {
    return emulator_.Run({.kernel = kernel,
                          .arguments = &arguments_,
                          .grid = grid,
                          .num_threads = 64,
                          .shared_bytes = 1024,
                          .name = "watched"},
                         {.resident_ctas = resident_ctas});
  }
  void Run(EmulatedKernel kernel, Index3 grid = {}, int resident_ctas = 1) {
    const absl::Status status = TryRun(kernel, grid, resident_ctas);
    ASSERT_TRUE(status.ok()) << status;
  }
  void ExpectRace(EmulatedKernel kernel, Index3 grid = {}, int resident_ctas = 1) {
    EXPECT_EXIT(Run(kernel, grid, resident_ctas), testing::ExitedWithCode(kExitOfAReport),
                "data race");
  }

  Emulator emulator_;
  std::array<std::uint32_t, 1024> out_ = {};
  const Arguments arguments_{out_.data()};
};
using RaceWatchDeathTest = RaceWatchTest;

void NeighboursThroughABarrier(const void* arguments) {
  const std::uint32_t at = Self().cta.x * 64 + Self().thread;
  for (std::uint32_t turn = 0; turn < 3; ++turn) {
    Shared()[Self().thread] = at + turn;
    MeetCta({"kernel", 1});
    OutOf(arguments)[at] += Shared()[63 - Self().thread];
    MeetCta({"kernel", 2});
  }
}
TEST_F(RaceWatchTest, BarriersOrderWhatComesBeforeThemBeforeWhatComesAfter) {
  Run(NeighboursThroughABarrier);
  Run(NeighboursThroughABarrier, {5, 1, 1}, 2);
}

TEST_F(RaceWatchTest, OneLaunchIsBeforeTheNextAndBeforeTheHost) {
  out_[7] = 1;
  const auto increment = [](const void* arguments) {
    OutOf(arguments)[Self().thread] = OutOf(arguments)[Self().thread] + 1;
  };
  const auto turn_over = [](const void* arguments) {
    const std::uint32_t other = OutOf(arguments)[63 - Self().thread];
    OutOf(arguments)[64 + Self().thread] = other;
  };
  Run(increment);
  Run(turn_over);
  EXPECT_EQ(out_[64 + 56], 2u);
}

TEST_F(RaceWatchTest, AFaultIsBeforeTheHostToo) {
  const absl::Status fault = TryRun([](const void* arguments) {
    OutOf(arguments)[Self().thread] = 3;
    MeetCta({"kernel", Self().thread == 9 ? 1 : 2});
  });
  EXPECT_FALSE(fault.ok());
  EXPECT_EQ(out_[0], 3u);
}

TEST_F(RaceWatchDeathTest, ThreadsThatWriteTheSameValueRace) {
  ExpectRace([](const void*) { Shared()[0] = 1; });
}

TEST_F(RaceWatchDeathTest, ThreadsOfTwoCtasThatWriteTheSameValueRace) {
  const auto kernel = [](const void* arguments) {
    if (Self().thread == 0) OutOf(arguments)[0] = 1;
  };
  ExpectRace(kernel, {2, 1, 1}, 1);
  ExpectRace(kernel, {2, 1, 1}, 2);
}

TEST_F(RaceWatchDeathTest, BarriersOfOneCtaOrderNothingInAnother) {
  ExpectRace(
      [](const void* arguments) {
        if (Self().cta.x == 0 && Self().thread == 0) OutOf(arguments)[0] = 1;
        MeetCta({"kernel", 1});
        if (Self().cta.x == 1 && Self().thread == 63) OutOf(arguments)[0] = 1;
      },
      {2, 1, 1}, 1);
}

// A shuffle exchanges a word and orders no memory.
TEST_F(RaceWatchDeathTest, AShuffleIsNoBarrier) {
  ExpectRace([](const void*) {
    if (Self().thread == 0) Shared()[0] = 1;
    MeetWarp(WarpOperation::kShuffle, ~0u, {"kernel", 1}, {}, [](const WarpData&, WarpData&) {});
    if (Self().thread == 1) Shared()[1] = Shared()[0];
  });
}

TEST_F(RaceWatchTest, AMeetingForOrdersSakeIsABarrierOfItsWarp) {
  Run([](const void*) {
    if (Self().thread == 0) Shared()[0] = 1;
    MeetWarp(WarpOperation::kSync, ~0u, {"kernel", 1}, {}, [](const WarpData&, WarpData&) {});
    if (Self().thread == 1) Shared()[1] = Shared()[0];
  });
}

alignas(16) constinit std::array<std::byte, 16> copied = {};

// Waiting lets the copies of one thread arrive for that thread alone.
void CopyAndReadAsAnother() {
  if (Self().thread == 0) CopyLater(Self().shared, copied.data(), {"kernel", 1});
  CommitCopies();
  WaitForCopies(0);
}
TEST_F(RaceWatchDeathTest, AWaitWithoutABarrierIsNotEnoughForOtherThreads) {
  ExpectRace([](const void* arguments) {
    CopyAndReadAsAnother();
    OutOf(arguments)[Self().thread] = Shared()[0];
  });
}
TEST_F(RaceWatchTest, AWaitAndABarrierAreEnoughForOtherThreads) {
  Run([](const void* arguments) {
    CopyAndReadAsAnother();
    MeetCta({"kernel", 2});
    OutOf(arguments)[Self().thread] = Shared()[0];
  });
}

// The matrix load itself is the warp's; each lane reads the row it points at.
TEST_F(RaceWatchDeathTest, ReadingForAMeetingIsReading) {
  ExpectRace([](const void*) {
    if (Self().thread == 0) Shared()[0] = 1;
    if (Self().thread == 1) CheckSharedRead16(Self().shared, {"kernel", 1});
  });
}

}  // namespace
}  // namespace pagoda::kernels::emulation
