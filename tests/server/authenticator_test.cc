#include "server/core/auth/authenticator.h"

#include <gtest/gtest.h>

#include <string>

#include "base/field_error.h"

namespace pagoda::server {
namespace {

using Mode = Authenticator::Mode;
constexpr base::RequestId kFirst{1};
constexpr base::RequestId kSecond{2};

TEST(Authenticator, WithOneTenantTheSaltAloneTellsNamespacesApart) {
  const Authenticator authenticator(Mode::kOneTenant, DrawSecret());
  const Principal principal = authenticator.Authenticate();
  const auto key = [&](std::optional<std::string_view> salt, base::RequestId id) {
    const auto access = authenticator.Access(principal, salt, id);
    EXPECT_FALSE(access->one_request);
    return access->cache_namespace;
  };
  EXPECT_EQ(key("x", kFirst), key("x", kSecond));
  EXPECT_EQ(key(std::nullopt, kFirst), key(std::nullopt, kSecond));
  EXPECT_NE(key("x", kFirst), key("y", kFirst));
  EXPECT_NE(key("", kFirst), key(std::nullopt, kFirst));
}

TEST(Authenticator, AnonymousRequestsShareNothingEvenWithTheSameSalt) {
  const Authenticator authenticator(Mode::kAnonymous, DrawSecret());
  const Principal principal = authenticator.Authenticate();
  const auto first = authenticator.Access(principal, "x", kFirst);
  const auto second = authenticator.Access(principal, "x", kSecond);
  EXPECT_TRUE(first->one_request && second->one_request);
  EXPECT_NE(first->cache_namespace, second->cache_namespace);
}

TEST(Authenticator, ALongSaltIsRefusedInBothModes) {
  for (Mode mode : {Mode::kOneTenant, Mode::kAnonymous}) {
    const Authenticator authenticator(mode, DrawSecret());
    const auto access =
        authenticator.Access(authenticator.Authenticate(), std::string(257, 's'), kFirst);
    EXPECT_EQ(base::FieldOf(access.status()), "cache_salt");
  }
}

TEST(Authenticator, TwoServersNeverShareANamespace) { EXPECT_NE(DrawSecret(), DrawSecret()); }

}  // namespace
}  // namespace pagoda::server
