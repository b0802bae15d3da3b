#include "server/config/tenants_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/token_digest.h"
#include "server/config/config_parser.h"

namespace pagoda::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Hex(std::string_view token) { return base::DigestToHex(base::DigestOfToken(token)); }

std::string Refusal(const std::string& text) {
  const auto tenants = ParseTenants(text, "tenants.conf");
  EXPECT_FALSE(tenants.ok()) << text;
  return std::string(tenants.status().message());
}

TEST(TenantsFile, EveryKeyIsRead) {
  const auto tenants = ParseTenants(
      "# customers\n[alpha]\r\n  token-digest = \"" + Hex("a") +
          "\"  # old\ntoken-digest=" + Hex("b") +
          "\ncertificate-name = \"spiffe://x/alpha#1\"\nweight = 3\nreserve-blocks = 100\n"
          "max-running = 8 # of them\nmax-queued-requests = 9\nmax-queued-tokens = 10\n"
          "isolated = true\n\n[beta.2]\n",
      "tenants.conf");
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  ASSERT_EQ(tenants->size(), 2u);
  const TenantSettings& alpha = tenants->front();
  EXPECT_EQ(alpha.name, "alpha");
  EXPECT_THAT(alpha.token_digests, ElementsAre(base::DigestOfToken("a"), base::DigestOfToken("b")));
  EXPECT_THAT(alpha.certificate_names, ElementsAre("spiffe://x/alpha#1"));
  EXPECT_EQ(alpha.weight, 3);
  EXPECT_EQ(alpha.reserve_blocks, 100);
  EXPECT_EQ(alpha.max_running, 8);
  EXPECT_EQ(alpha.max_queued_requests, 9);
  EXPECT_EQ(alpha.max_queued_tokens, 10);
  EXPECT_TRUE(alpha.isolated);
  EXPECT_EQ(tenants->back().name, "beta.2");
  EXPECT_EQ(tenants->back().weight, 1);
  EXPECT_FALSE(tenants->back().isolated);
}

TEST(TenantsFile, ARefusalNamesFileLineKeyAndNumbers) {
  EXPECT_THAT(Refusal("[a]\nweight = 0\n"),
              AllOf(HasSubstr("tenants.conf line 2"), HasSubstr("tenant a, weight = 0"),
                    HasSubstr("1 to 1000000")));
  EXPECT_THAT(Refusal("[a]\nreserve-blocks = -1\n"), HasSubstr("reserve-blocks = -1"));
  EXPECT_THAT(Refusal("[a]\nmax-running = many\n"), HasSubstr("max-running: is no whole number"));
  EXPECT_THAT(Refusal("[a]\nmax-queued-tokens = 99999999999999999999\n"),
              HasSubstr("max-queued-tokens"));
  EXPECT_THAT(Refusal("[a]\nweight = 1\nweight = 2\n"), HasSubstr("weight: given twice"));
  EXPECT_THAT(Refusal("[a]\nisolated = yes\n"), HasSubstr("true or false"));
  EXPECT_THAT(Refusal("[a]\nwieght = 2\n"),
              AllOf(HasSubstr("unknown key wieght"), HasSubstr("weight, reserve-blocks")));
  EXPECT_THAT(Refusal("[a]\n[b]\n[a]\n"), AllOf(HasSubstr("line 3"), HasSubstr("first on line 1")));
  EXPECT_THAT(Refusal("weight = 1\n"), HasSubstr("before the first section"));
  EXPECT_THAT(Refusal("# nobody\n"), HasSubstr("no tenant"));
  for (const char* const section : {"[]\n", "[a b]\n", "[a\n", "[a] b\n", "[\xC3\xA4]\n"}) {
    EXPECT_THAT(Refusal(section), HasSubstr("a section is [NAME]")) << section;
  }
  EXPECT_THAT(Refusal("[a]\nweight = \"1\n"), HasSubstr("quotes do not match"));
}

TEST(TenantsFile, OneCredentialBelongsToOneTenant) {
  const std::string digest = Hex("shared");
  EXPECT_THAT(Refusal("[a]\ntoken-digest = " + digest + "\n[b]\ntoken-digest = " + digest + "\n"),
              AllOf(HasSubstr("line 4: tenant b, token-digest"), HasSubstr("tenant a on line 2"),
                    Not(HasSubstr(digest))));
  EXPECT_THAT(Refusal("[a]\ntoken-digest = " + digest + "\ntoken-digest = " + digest + "\n"),
              HasSubstr("tenant a on line 2"));
  EXPECT_THAT(Refusal("[a]\ncertificate-name = x\n[b]\ncertificate-name = x\n"),
              HasSubstr("tenant a on line 2"));
}

// An operator who writes a token where its digest belongs must not find it in a log as well.
TEST(TenantsFile, AMisplacedSecretIsRefusedAndNeverRepeated) {
  for (const std::string& line : {std::string("token-digest = s3cret/token"),
                                  std::string("token = s3cret/token"), std::string("s3cret/token"),
                                  std::string("s3cret/token=="), std::string("weight = s3cret")}) {
    EXPECT_THAT(Refusal("[a]\n" + line + "\n"), Not(HasSubstr("s3cret"))) << line;
  }
  EXPECT_THAT(Refusal("s3cret/token==\n"), Not(HasSubstr("s3cret")));
  EXPECT_THAT(Refusal("[s3cret/token]\n"), Not(HasSubstr("s3cret")));
}

// Files against the flags beside them.
class LoadTenantsTest : public testing::Test {
 protected:
  ServerConfig Config(const std::string& text) {
    ServerConfig config;
    config.max_queued_requests = 10;
    config.max_queued_tokens = 1000;
    config.tenants = (std::filesystem::path(testing::TempDir()) / "tenants.conf").string();
    std::ofstream(config.tenants) << text;
    return config;
  }
};

TEST_F(LoadTenantsTest, BoundsLeftOutAreEvenSharesOfWhatIsLeft) {
  const auto tenants =
      LoadTenants(Config("[a]\nmax-queued-requests = 4\n[b]\n[c]\nmax-queued-tokens = 100\n"));
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  EXPECT_EQ((*tenants)[0].max_queued_requests, 4);
  EXPECT_EQ((*tenants)[1].max_queued_requests, 3);
  EXPECT_EQ((*tenants)[2].max_queued_requests, 3);
  EXPECT_EQ((*tenants)[0].max_queued_tokens, 450);
  EXPECT_EQ((*tenants)[1].max_queued_tokens, 450);
  EXPECT_EQ((*tenants)[2].max_queued_tokens, 100);
}

TEST_F(LoadTenantsTest, BoundsThatAddUpToMoreThanTheServersAreRefusedWithBothNumbers) {
  const auto requests = LoadTenants(Config("[a]\nmax-queued-requests = 10\n[b]\n"));
  EXPECT_THAT(std::string(requests.status().message()),
              AllOf(HasSubstr("adds up to 10"), HasSubstr("--max-queued-requests is 10")));
  const auto tokens =
      LoadTenants(Config("[a]\nmax-queued-tokens = 600\n[b]\nmax-queued-tokens = 401\n"));
  EXPECT_THAT(std::string(tokens.status().message()),
              AllOf(HasSubstr("adds up to 1001"), HasSubstr("--max-queued-tokens is 1000")));
}

TEST_F(LoadTenantsTest, ACertificateNameNeedsSomeoneWhoChecksCertificates) {
  ServerConfig config = Config("[a]\ncertificate-name = a.example\n");
  EXPECT_THAT(std::string(LoadTenants(config).status().message()),
              AllOf(HasSubstr("a.example"), HasSubstr("--tls-client-ca")));
  config.tls_client_ca = "ca.pem";
  EXPECT_TRUE(LoadTenants(config).ok());
}

TEST_F(LoadTenantsTest, AFileThatIsNotThereIsNamed) {
  ServerConfig config;
  config.tenants = "/nowhere/tenants.conf";
  EXPECT_THAT(std::string(LoadTenants(config).status().message()),
              HasSubstr("--tenants /nowhere/tenants.conf"));
}

// The whole way: flag, environment or key of --config, and no secret in what is printed.
class TenantsOfTheConfigTest : public LoadTenantsTest {
 protected:
  TenantsOfTheConfigTest() : file_(Config("[alpha]\ntoken-digest = " + Hex("a") + "\n").tenants) {
    base_ = {"--model", PAGODA_SOURCE_DIR "/CMakeLists.txt"};
  }
  absl::StatusOr<ParsedConfig> Parse(const std::vector<std::string>& more,
                                     const Environment& environment = {}) {
    std::vector<std::string> all = base_;
    all.insert(all.end(), more.begin(), more.end());
    return ParseConfig(all, environment);
  }

  std::string file_;
  std::vector<std::string> base_;
};

TEST_F(TenantsOfTheConfigTest, TheFileComesByFlagOrEnvironment) {
  for (const auto& parsed : {Parse({"--tenants", file_}), Parse({}, {{"PAGODA_TENANTS", file_}})}) {
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_EQ(parsed->config.tenant_settings.size(), 1u);
    EXPECT_EQ(parsed->config.tenant_settings.front().name, "alpha");
  }
  EXPECT_TRUE(Parse({"--tenants", file_, "--listen", "0.0.0.0:0"}).ok());
}

TEST_F(TenantsOfTheConfigTest, TenantsAndNobodyContradictEachOther) {
  const auto parsed = Parse({"--tenants", file_, "--anonymous"});
  EXPECT_THAT(std::string(parsed.status().message()),
              AllOf(HasSubstr("--tenants"), HasSubstr("--anonymous")));
}

TEST_F(TenantsOfTheConfigTest, PrintConfigShowsTenantsWithoutTheirCredentials) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--check-config"}}) {
    std::vector<std::string> flags = {"--tenants", file_, "--print-config"};
    flags.insert(flags.end(), more.begin(), more.end());
    const auto parsed = Parse(flags);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_THAT(parsed->print, HasSubstr("tenants = \"" + file_ + "\"  # flag"));
    EXPECT_THAT(parsed->print, Not(HasSubstr(Hex("a"))));
  }
}

}  // namespace
}  // namespace pagoda::server
