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

TEST(ShutdownSignalsDeathTest, AHangUpAsksForAReloadAsOftenAsItComes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        for (int i = 0; i < 2; ++i) {
          kill(getpid(), SIGHUP);
          if (signals.Wait() != ShutdownSignals::Event::kReload) _exit(1);
        }
        if (signals.asked()) _exit(2);
        kill(getpid(), SIGTERM);
        _exit(signals.Wait() == ShutdownSignals::Event::kDrain ? 0 : 3);
      },
      testing::ExitedWithCode(0), "");
}

// An operator's Drain is no signal: the one that follows it is the first.
TEST(ShutdownSignalsDeathTest, AskingIsTheFirstSignalsEffectWithoutBeingOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        signals.Ask();
        if (signals.Wait() != ShutdownSignals::Event::kDrain) _exit(1);
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        _exit(signals.Wait() == ShutdownSignals::Event::kDrain ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
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
