#include "server/core/auth/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/field_error.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

using Mode = Authenticator::Mode;
constexpr base::RequestId kFirst{1};
constexpr base::RequestId kSecond{2};

Principal Caller(const Authenticator& authenticator, const PresentedCredentials& presented = {}) {
  return authenticator.Authenticate(presented).value();
}

TEST(Authenticator, WithOneTenantTheSaltAloneTellsNamespacesApart) {
  const Authenticator authenticator(Mode::kOneTenant, DrawSecret());
  const Principal principal = Caller(authenticator);
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
  const Principal principal = Caller(authenticator);
  const auto first = authenticator.Access(principal, "x", kFirst);
  const auto second = authenticator.Access(principal, "x", kSecond);
  EXPECT_TRUE(first->one_request && second->one_request);
  EXPECT_NE(first->cache_namespace, second->cache_namespace);
}

// Lengths at and around the bound, and one that no message should be able to carry unnoticed.
TEST(Authenticator, ALongSaltIsRefusedInBothModes) {
  for (Mode mode : {Mode::kOneTenant, Mode::kAnonymous}) {
    const Authenticator authenticator(mode, DrawSecret());
    const auto field = [&](std::size_t bytes) {
      const std::string salt(bytes, 's');
      const auto access = authenticator.Access(Caller(authenticator), salt, kFirst);
      return base::FieldOf(access.status());
    };
    EXPECT_EQ(field(0), "");
    EXPECT_EQ(field(256), "");
    EXPECT_EQ(field(257), "cache_salt");
    EXPECT_EQ(field(1'000'000), "cache_salt");
  }
}

TEST(Authenticator, TwoServersNeverShareANamespace) { EXPECT_NE(DrawSecret(), DrawSecret()); }

// Two tenants: alpha with two tokens and a certificate, beta with one of each.
class TwoTenants : public testing::Test {
 protected:
  static std::vector<TenantCredentials> Tenants() {
    return {{.name = "alpha",
             .token_digests = {base::DigestOfToken("alpha-1"), base::DigestOfToken("alpha-2")},
             .certificate_names = {"spiffe://test/alpha", "alpha.example"}},
            {.name = "beta",
             .token_digests = {base::DigestOfToken("beta-1")},
             .certificate_names = {"beta.example"}}};
  }

  std::string NameOf(const PresentedCredentials& presented) const {
    const auto caller = authenticator_.Authenticate(presented);
    return caller.ok() ? caller->name() : base::ReasonOf(caller.status());
  }
  std::string WithHeader(std::string_view header) const {
    const auto caller =
        authenticator_.Authenticate({.authorization = {header}, .certificate_names = {}});
    // Whatever was sent may be a secret.
    EXPECT_EQ(caller.status().message().find("alpha-"), absl::string_view::npos);
    return caller.ok() ? caller->name() : base::ReasonOf(caller.status());
  }

  Authenticator authenticator_{DrawSecret(), Tenants()};
};

TEST_F(TwoTenants, EachTokenNamesItsTenant) {
  EXPECT_EQ(WithHeader("Bearer alpha-1"), "alpha");
  EXPECT_EQ(WithHeader("bearer   alpha-2"), "alpha");
  EXPECT_EQ(WithHeader("BEARER beta-1"), "beta");
  const auto beta =
      authenticator_.Authenticate({.authorization = {"Bearer beta-1"}, .certificate_names = {}});
  EXPECT_EQ(beta->tenant(), base::TenantId{1});
}

TEST_F(TwoTenants, WhateverNamesNobodyIsRefused) {
  EXPECT_EQ(NameOf({}), reason::kNoCredential);
  for (const char* const header :
       {"", "Bearer", "Bearer ", "alpha-1", "Basic alpha-1", "Bearer\talpha-1", "Bearer alpha-1 ",
        "Bearer alpha-1 alpha-2", "Bearer \xFF", "Bearers alpha-1"}) {
    EXPECT_EQ(WithHeader(header), reason::kMalformedCredential) << header;
  }
  for (const char* const header : {"Bearer alpha", "Bearer alpha-11", "Bearer ALPHA-1"}) {
    EXPECT_EQ(WithHeader(header), reason::kUnknownCredential) << header;
  }
  EXPECT_EQ(
      NameOf({.authorization = {"Bearer alpha-1", "Bearer alpha-1"}, .certificate_names = {}}),
      reason::kMalformedCredential);
}

TEST_F(TwoTenants, ADigestIsNoToken) {
  const std::string digest = base::DigestToHex(base::DigestOfToken("alpha-1"));
  EXPECT_EQ(WithHeader("Bearer " + digest), reason::kUnknownCredential);
}

TEST_F(TwoTenants, ACertificateNamesItsTenantByteByByte) {
  const auto with = [&](std::vector<std::string_view> names) {
    return NameOf({.authorization = {}, .certificate_names = std::move(names)});
  };
  EXPECT_EQ(with({"beta.example"}), "beta");
  EXPECT_EQ(with({"other.example", "spiffe://test/alpha"}), "alpha");
  EXPECT_EQ(with({"alpha.example", "spiffe://test/alpha"}), "alpha");
  for (const char* const name :
       {"gamma.example", "*.example", "Alpha.example", "alpha.example.", "alpha.exampl"}) {
    EXPECT_EQ(with({name}), reason::kUnknownCredential) << name;
  }
  // Of two tenants: of none.
  EXPECT_EQ(with({"alpha.example", "beta.example"}), reason::kUnknownCredential);
}

TEST_F(TwoTenants, ATokenAndACertificateMustBeOfOneTenant) {
  const auto with = [&](std::string_view header, std::string_view name) {
    return NameOf({.authorization = {header}, .certificate_names = {name}});
  };
  EXPECT_EQ(with("Bearer alpha-1", "alpha.example"), "alpha");
  // A certificate that says only that the connection may be made.
  EXPECT_EQ(with("Bearer alpha-1", "proxy.example"), "alpha");
  EXPECT_EQ(with("Bearer alpha-1", "beta.example"), reason::kUnknownCredential);
  // A bad token is not made good by a certificate.
  EXPECT_EQ(with("Bearer gamma", "alpha.example"), reason::kUnknownCredential);
  EXPECT_EQ(with("Basic x", "alpha.example"), reason::kMalformedCredential);
}

TEST_F(TwoTenants, TheSameSaltIsAnotherNamespaceForAnotherTenant) {
  const auto key = [&](std::string_view token, std::optional<std::string_view> salt) {
    const std::string header = "Bearer " + std::string(token);
    const Principal caller =
        Caller(authenticator_, {.authorization = {header}, .certificate_names = {}});
    return authenticator_.Access(caller, salt, kFirst)->cache_namespace;
  };
  EXPECT_EQ(key("alpha-1", "s"), key("alpha-2", "s"));
  EXPECT_NE(key("alpha-1", "s"), key("beta-1", "s"));
  EXPECT_NE(key("alpha-1", std::nullopt), key("beta-1", std::nullopt));
  // Neither name nor salt can be moved over the border between them.
  EXPECT_NE(key("alpha-1", "beta"), key("beta-1", "alpha"));
}

TEST_F(TwoTenants, ReplacedCredentialsHoldFromThenOn) {
  std::vector<TenantCredentials> next = Tenants();
  next[0].token_digests = {base::DigestOfToken("alpha-3")};
  authenticator_.ReplaceCredentials(next);
  EXPECT_EQ(WithHeader("Bearer alpha-3"), "alpha");
  EXPECT_EQ(WithHeader("Bearer alpha-1"), reason::kUnknownCredential);
  EXPECT_EQ(WithHeader("Bearer beta-1"), "beta");
}

}  // namespace
}  // namespace pagoda::server
