#include "kernels/emulation/bank_watch.h"

#include <cstring>

#include "gtest/gtest.h"
#include "kernels/emulation/emulator.h"
#include "kernels/emulation/shared_access.h"

namespace pagoda::kernels::emulation {
namespace {

struct Pattern {
  std::uint32_t bytes;   // of each lane
  std::uint32_t stride;  // from lane to lane, in bytes
  std::uint32_t lanes = 32;
};

// Each of the warp's first lanes touches its bytes, `kTimes` times from one place.
constexpr std::uint64_t kTimes = 3;
void Touch(const void* arguments) {
  const auto& pattern = *static_cast<const Pattern*>(arguments);
  const ThreadPlace& place = Self();
  const std::uint32_t lane = place.thread % 32;
  if (lane >= pattern.lanes) return;
  for (std::uint64_t time = 0; time < kTimes; ++time) {
    NoteShared(place.shared + std::size_t{lane} * pattern.stride, pattern.bytes, CallSite::Here());
  }
}

class BankWatchTest : public testing::Test {
 protected:
  // Further passes of one access of a warp.
  std::uint64_t ConflictsOf(const Pattern& pattern) {
    const BankWatch watch;
    const Schedule schedule = {.order = Order::kRandom, .seed = 3};
    const absl::Status done = emulator_.Run({.kernel = Touch,
                                             .arguments = &pattern,
                                             .grid = {2, 1, 1},
                                             .num_threads = 64,
                                             .shared_bytes = 8192,
                                             .name = "touch"},
                                            schedule);
    EXPECT_TRUE(done.ok()) << done;
    const auto places = watch.Places();
    EXPECT_EQ(places.size(), 1u);
    EXPECT_EQ(places.at(0).file, "bank_watch_test.cc");
    EXPECT_EQ(places.at(0).accesses, 2 * 2 * kTimes);  // warps of two CTAs
    return places.at(0).conflicts / (2 * 2 * kTimes);
  }

  Emulator emulator_;
};

TEST_F(BankWatchTest, NeighboursAndOneWordForAllAreServedAtOnce) {
  EXPECT_EQ(ConflictsOf({.bytes = 4, .stride = 4}), 0u);
  EXPECT_EQ(ConflictsOf({.bytes = 4, .stride = 0}), 0u);
  EXPECT_EQ(ConflictsOf({.bytes = 2, .stride = 2}), 0u);
  EXPECT_EQ(ConflictsOf({.bytes = 4, .stride = 36}), 0u);
}

TEST_F(BankWatchTest, WordsOfOneBankTakeAPassEach) {
  EXPECT_EQ(ConflictsOf({.bytes = 4, .stride = 8}), 1u);
  EXPECT_EQ(ConflictsOf({.bytes = 4, .stride = 64}), 15u);
  EXPECT_EQ(ConflictsOf({.bytes = 4, .stride = 128}), 31u);
  EXPECT_EQ(ConflictsOf({.bytes = 2, .stride = 128, .lanes = 4}), 3u);
}

TEST_F(BankWatchTest, WideAccessesAreTakenInTurns) {
  EXPECT_EQ(ConflictsOf({.bytes = 16, .stride = 16}), 0u);
  EXPECT_EQ(ConflictsOf({.bytes = 8, .stride = 8}), 0u);
  // Of each eight lanes two meet.
  EXPECT_EQ(ConflictsOf({.bytes = 16, .stride = 32}), 4u);
  EXPECT_EQ(ConflictsOf({.bytes = 16, .stride = 128}), 28u);
}

TEST_F(BankWatchTest, NothingIsKeptWithoutOneAndAStepOutsideIsAFault) {
  const Pattern outside = {.bytes = 4, .stride = 512};
  const absl::Status done = emulator_.Run({.kernel = Touch,
                                           .arguments = &outside,
                                           .grid = {},
                                           .num_threads = 32,
                                           .shared_bytes = 8192,
                                           .name = "touch"},
                                          {});
  EXPECT_NE(done.message().find("outside the CTA's shared memory"), absl::string_view::npos)
      << done;
}

}  // namespace
}  // namespace pagoda::kernels::emulation
