#include "server/shutdown_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace pagoda::server {
namespace {

// Each in a process of its own: signals are the process's.
TEST(ShutdownSignalsDeathTest, TheFirstSignalAsksForADrain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        if (signals.asked()) _exit(1);
        kill(getpid(), SIGTERM);
        signals.Wait();
        _exit(signals.asked() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ShutdownSignalsDeathTest, TheSecondSignalEndsAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        kill(getpid(), SIGINT);
        signals.Wait();
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::ExitedWithCode(130), "");
}

TEST(ShutdownSignalsDeathTest, EndsQuietlyWithoutASignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          ShutdownSignals signals;
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace pagoda::server
