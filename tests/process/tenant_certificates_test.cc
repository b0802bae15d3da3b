#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process/certificates.h"
#include "tests/process/tenant_calls.h"
#include "tests/server/grpc/rpc_walk.h"

// Tenants known by their certificates, and the part of the walk over all methods that needs TLS.
namespace pagoda::process {
namespace {

using ::grpc::StatusCode;
using rpcs::AllMethods;
using rpcs::CallAny;
using rpcs::Metadata;

// Alpha has a token, beta a certificate.
class TenantCertificates : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ca = FreshCertificate("-tenant-ca", {.name = "our CA"});
    other_ca = FreshCertificate("-tenant-other-ca", {.name = "other CA"});
    server = FreshCertificate("-tenant-server", {.name = "server", .issuer = &ca});
    beta = FreshCertificate("-tenant-beta",
                            {.name = "beta", .issuer = &ca, .more_names = ",DNS:beta.example"});
    uri = FreshCertificate(
        "-tenant-uri",
        {.name = "beta.example", .issuer = &ca, .more_names = ",URI:spiffe://test/beta"});
    nobody = FreshCertificate(
        "-tenant-nobody",
        {.name = "beta.example", .issuer = &ca, .more_names = ",DNS:nobody.example"});
    expired = FreshCertificate(
        "-tenant-expired",
        {.name = "beta", .issuer = &ca, .more_names = ",DNS:beta.example", .expired = true});
    forged = FreshCertificate(
        "-tenant-forged", {.name = "beta", .issuer = &other_ca, .more_names = ",DNS:beta.example"});
  }

  std::shared_ptr<::grpc::Channel> Channel(const Certificate* shown) {
    ::grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = ContentOf(ca.cert);
    if (shown != nullptr) {
      tls.pem_cert_chain = ContentOf(shown->cert);
      tls.pem_private_key = ContentOf(shown->key);
    }
    ::grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return ::grpc::CreateCustomChannel(process_.address(), ::grpc::SslCredentials(tls), arguments);
  }

  void SetUp() override { ASSERT_TRUE(process_.WaitForLog("serving ")) << process_.log(); }

  std::vector<std::string> Flags() {
    std::vector<std::string> flags =
        TenantFlags(TenantsFile(TenantSection("alpha", kAlphaToken) +
                                "[beta]\ncertificate-name = beta.example\n"
                                "certificate-name = spiffe://test/beta\n"));
    flags.insert(flags.end(), {"--model", TinyFile(), "--tls-cert", server.cert, "--tls-key",
                               server.key, "--tls-client-ca", ca.cert});
    return flags;
  }

  static inline Certificate ca, other_ca, server, beta, uri, nobody, expired, forged;
  ServerProcess process_{Flags()};
};

const Metadata kAlpha = {{"authorization", "Bearer " + std::string(kAlphaToken)}};
constexpr const char* kListModels = "/pagoda.v1.InferenceService/ListModels";

StatusCode Ask(const std::shared_ptr<::grpc::Channel>& channel, const Metadata& metadata = {}) {
  return CallAny(channel, kListModels, metadata).status.error_code();
}

TEST_F(TenantCertificates, ATokenOrACertificateSaysWhoCallsAndTwoMustAgree) {
  EXPECT_EQ(Ask(Channel(nullptr), kAlpha), StatusCode::OK);
  EXPECT_EQ(Ask(Channel(&beta)), StatusCode::OK);
  EXPECT_EQ(Ask(Channel(&uri)), StatusCode::OK);
  EXPECT_EQ(Ask(Channel(&nobody), kAlpha), StatusCode::OK);
  EXPECT_EQ(Ask(Channel(&beta), kAlpha), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(Channel(nullptr)), StatusCode::UNAUTHENTICATED);
  // Where a certificate has names of machines or services, its common name is no name.
  EXPECT_EQ(Ask(Channel(&nobody)), StatusCode::UNAUTHENTICATED);
}

// An expired certificate and one of another CA do not get as far as a call: TLS refuses the
// connection.
TEST_F(TenantCertificates, NoMethodAnswersToACertificateThatIsNotGood) {
  const auto methods = AllMethods(Channel(&beta), {});
  EXPECT_GE(methods.size(), 9u);
  struct Fault {
    const char* what;
    const Certificate* shown;
    StatusCode expected;
  };
  for (const Fault& fault : {Fault{"of no tenant", &nobody, StatusCode::UNAUTHENTICATED},
                             Fault{"expired", &expired, StatusCode::UNAVAILABLE},
                             Fault{"of another CA", &forged, StatusCode::UNAVAILABLE}}) {
    const auto channel = Channel(fault.shown);
    for (const std::string& method : methods) {
      if (method.ends_with("Health/Watch")) continue;
      const bool is_open =
          method.ends_with("Health/Check") && fault.expected == StatusCode::UNAUTHENTICATED;
      EXPECT_EQ(CallAny(channel, method, {}).status.error_code(),
                is_open ? StatusCode::OK : fault.expected)
          << method << ", " << fault.what;
    }
  }
}

}  // namespace
}  // namespace pagoda::process
