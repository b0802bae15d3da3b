#include "base/runtime/log.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::base {
namespace {

TEST(Log, WritesLevelAndTextToStderrAndHonoursTheLevel) {
  testing::internal::CaptureStderr();
  SetLogLevel(LogLevel::kWarning);
  LogInfo("nobody reads this");
  LogWarning("the pool is nearly full {}");
  SetLogLevel(LogLevel::kInfo);
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find("nobody"), std::string::npos);
  EXPECT_NE(written.find("warning"), std::string::npos);
  EXPECT_NE(written.find("the pool is nearly full {}"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::base
