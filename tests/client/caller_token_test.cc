#include "client/caller_token.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace pagoda::client {
namespace {

absl::StatusOr<InterceptorFactories> From(const std::string& content) {
  const std::string path = testing::TempDir() + "/caller.token";
  std::ofstream(path) << content;
  return CallerToken(path);
}

// That a server then knows the caller: tests/process/tenants_test.cc.
TEST(CallerToken, IsOneLineOfItsFile) {
  EXPECT_EQ(From("a-token")->size(), 1u);
  EXPECT_EQ(From("a-token\r\n")->size(), 1u);
  for (const char* const bad : {"", "\n", "two words", "two\nlines"}) {
    const auto token = From(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(token.status())) << bad;
    EXPECT_EQ(token.status().message().find("two"), absl::string_view::npos);
  }
}

TEST(CallerToken, NoFileIsNoTokenAndAMissingOneIsNamed) {
  EXPECT_TRUE(CallerToken("")->empty());
  EXPECT_TRUE(absl::IsNotFound(CallerToken("no/such.token").status()));
}

}  // namespace
}  // namespace pagoda::client
