#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/process/certificates.h"
#include "tests/process/program.h"
#include "tests/process/server_fixture.h"

// TLS with real certificates: the whole server and the bundled client.
namespace pagoda::process {
namespace {

using testing::HasSubstr;

// Two CAs that do not know each other, and what each has signed.
class Tls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (int side = 0; side < 2; ++side) {
      const std::string which = side == 0 ? "our" : "other";
      ca[side] = FreshCertificate("-" + which + "-ca", {.name = which + " CA"});
      leaf[side] =
          FreshCertificate("-" + which + "-leaf", {.name = which + " leaf", .issuer = &ca[side]});
    }
  }

  static std::vector<std::string> ServerFlags(const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags = {"--model", TinyFile()};
    flags.insert(flags.end(), kTinyFlags.begin(), kTinyFlags.end());
    flags.insert(flags.end(), {"--tls-cert", leaf[0].cert, "--tls-key", leaf[0].key});
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  // The bundled client against the server, with these flags.
  static Ran Client(const ServerProcess& server, const std::string& command,
                    const std::vector<std::string>& flags) {
    std::vector<std::string> words = {PAGODA_CLIENT_PATH, command, "--server", server.address()};
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(words);
  }

  // 0 is ours, which the server shows and trusts; 1 is the other side's.
  static inline Certificate ca[2], leaf[2];
};

TEST_F(Tls, AClientWithTheRightCaIsServedAndOneWithAnotherOrInPlainTextIsNot) {
  ServerProcess server(ServerFlags());
  ASSERT_TRUE(server.WaitForLog("serving ")) << server.log();
  const Ran served = Client(
      server, "generate",
      {"--tls-ca", ca[0].cert, "--prompt", "a", "--max-tokens", "3", "--ignore-eos", "--json"});
  EXPECT_EQ(served.code, 0) << served.output;
  EXPECT_THAT(served.output, HasSubstr("\"generated_tokens\":3"));
  EXPECT_NE(Client(server, "health", {"--tls-ca", ca[1].cert}).code, 0);
  EXPECT_NE(Client(server, "health", {}).code, 0);
  EXPECT_EQ(Client(server, "health", {"--tls-ca", ca[0].cert, "--wait", "60"}).code, 0);
}

TEST_F(Tls, AServerWithAClientCaServesOnlyThoseWhomItSigned) {
  ServerProcess server(ServerFlags({"--tls-client-ca", ca[0].cert}));
  ASSERT_TRUE(server.WaitForLog("serving ")) << server.log();
  const auto health = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--tls-ca", ca[0].cert};
    flags.insert(flags.end(), more.begin(), more.end());
    return Client(server, "health", flags).code;
  };
  EXPECT_EQ(health({"--tls-cert", leaf[0].cert, "--tls-key", leaf[0].key, "--wait", "60"}), 0);
  EXPECT_NE(health({}), 0);
  EXPECT_NE(health({"--tls-cert", leaf[1].cert, "--tls-key", leaf[1].key}), 0);
}

// What stands in the way is named, with its flag and its file.
TEST_F(Tls, FilesThatAreNotWhatTheyShouldBeStopTheStart) {
  const std::string junk = FreshFile("-junk.pem");
  std::ofstream(junk) << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  struct Case {
    std::string cert, key, client_ca, named_flag, named_file;
  };
  const Certificate& ours = leaf[0];
  const std::string folder = testing::TempDir();
  for (const Case& bad :
       std::vector<Case>{{ours.cert, leaf[1].key, "", "--tls-key", leaf[1].key},  // another's key
                         {ours.cert, ours.cert, "", "--tls-key", ours.cert},      // no key at all
                         {ours.key, ours.key, "", "--tls-cert", ours.key},
                         {junk, ours.key, "", "--tls-cert", junk},
                         {ours.cert, folder, "", "--tls-key", folder},  // cannot be read
                         {ours.cert, "no/such.key", "", "--tls-key", "no/such.key"},
                         {ours.cert, ours.key, junk, "--tls-client-ca", junk},
                         {ours.cert, "", "", "--tls-key", ""}}) {
    std::vector<std::string> flags = {"--model", TinyFile(), "--tls-cert", bad.cert};
    if (!bad.key.empty()) flags.insert(flags.end(), {"--tls-key", bad.key});
    if (!bad.client_ca.empty()) flags.insert(flags.end(), {"--tls-client-ca", bad.client_ca});
    ServerProcess server(flags);
    EXPECT_NE(server.Wait(), 0);
    EXPECT_FALSE(server.WaitForLog("serving "));
    EXPECT_THAT(server.log(), HasSubstr(bad.named_flag));
    EXPECT_THAT(server.log(), HasSubstr(bad.named_file));
  }
}

}  // namespace
}  // namespace pagoda::process
