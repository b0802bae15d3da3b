#include "server/grpc/door_credentials.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

std::string FileWith(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

// With certificates that are real: tests/process/tls_test.cc.
TEST(DoorCredentials, AFileIsRefusedByItsFlagBeforeAnythingStarts) {
  const Authenticator authenticator(Authenticator::Mode::kOneTenant, {});
  FrontDesk desk(authenticator);
  Doorway doorway;
  CallGate gate(doorway, desk);
  const auto why = [&gate](const TlsFiles& files) {
    return std::string(MakeDoorCredentials(files, gate).status().message());
  };
  const std::string cert = FileWith("cert.pem", "-----BEGIN CERTIFICATE-----");
  const std::string key = FileWith("key.pem", "-----BEGIN PRIVATE KEY-----");
  const std::string locked = FileWith("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----");
  EXPECT_EQ(why({.cert = cert, .key = key, .client_ca = ""}), "");
  EXPECT_EQ(why(TlsFiles()), "");
  EXPECT_NE(why({.cert = cert, .key = "", .client_ca = ""}).find("--tls-key"), std::string::npos);
  EXPECT_NE(why({.cert = "", .key = "", .client_ca = cert}).find("--tls-cert"), std::string::npos);
  EXPECT_NE(why({.cert = cert, .key = cert, .client_ca = ""}).find("--tls-key " + cert),
            std::string::npos);
  EXPECT_NE(why({.cert = key, .key = key, .client_ca = ""}).find("--tls-cert " + key),
            std::string::npos);
  EXPECT_NE(why({.cert = cert, .key = locked, .client_ca = ""}).find("pass phrase"),
            std::string::npos);
  EXPECT_NE(why({.cert = cert, .key = key, .client_ca = key}).find("--tls-client-ca " + key),
            std::string::npos);
}

}  // namespace
}  // namespace pagoda::server
