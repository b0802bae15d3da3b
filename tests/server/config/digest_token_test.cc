#include "server/config/digest_token.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace pagoda::server {
namespace {

absl::StatusOr<std::string> Digest(const std::string& input) {
  std::istringstream stream(input);
  return DigestTokenFrom(stream);
}

TEST(DigestToken, TheEndOfTheLineIsNoPartOfTheToken) {
  const std::string token(32, 'x');
  // printf %s xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | sha256sum
  const std::string expected = "c62e4615bd39e222572f3a1bf7c2132ea1e65b17ec805047bd6b2842c593493f";
  for (const char* const end : {"", "\n", "\r\n"}) {
    const auto digest = Digest(token + end);
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_EQ(*digest, expected);
  }
}

TEST(DigestToken, WhatCouldBeGuessedOrIsNoTokenIsRefusedAndNotRepeated) {
  for (const std::string& bad :
       {std::string("hunter2"), std::string(31, 'x'), std::string(513, 'x'),
        std::string(20, 'x') + " " + std::string(20, 'x'), std::string(40, 'x') + "\n\n"}) {
    const auto digest = Digest(bad);
    ASSERT_FALSE(digest.ok()) << bad;
    EXPECT_EQ(digest.status().message().find("hunter"), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace pagoda::server
