#include "base/check.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace pagoda::base {
namespace {

TEST(CheckDeathTest, NamesConditionAndDetail) {
  EXPECT_DEATH(PAGODA_CHECK_MSG(1 == 2, "block 7 is owned twice"),
               "check_test.cc:.*check failed: 1 == 2: block 7 is owned twice");
}

TEST(CheckDeathTest, RunsTheFaultHookBeforeTheAbort) {
  EXPECT_DEATH(
      {
        SetFaultHook([] { std::fputs("journal written\n", stderr); });
        PAGODA_CHECK(false);
      },
      "journal written");
}

TEST(Check, WorksInsideIfAndElse) {
  int path = 0;
  if (path == 0)
    PAGODA_CHECK(true);
  else
    path = 1;
  EXPECT_EQ(path, 0);
}

}  // namespace
}  // namespace pagoda::base
