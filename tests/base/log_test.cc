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

TEST(Log, AnEntryIsOneLineWhateverIsInIt) {
  testing::internal::CaptureStderr();
  LogWarning("architecture 'x\n2026-01-01T00:00:00 error forged' is not built");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find('\n'), written.size() - 1);
  EXPECT_NE(written.find("x\\x0a2026"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::base
