#include "client/connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

namespace pagoda::client {
namespace {

// A server that accepts when it is told to; until then the kernel alone knows its callers.
class LateServer {
 public:
  LateServer() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, plain, size), 0);
    EXPECT_EQ(::listen(listener_, 4), 0);
    EXPECT_EQ(::getsockname(listener_, plain, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~LateServer() {
    if (accepted_ >= 0) ::close(accepted_);
    ::close(listener_);
  }
  LateServer(const LateServer&) = delete;
  LateServer& operator=(const LateServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Takes the caller that has waited longest and says what HTTP/2 begins with: no settings.
  void Answer() {
    accepted_ = ::accept(listener_, nullptr, nullptr);
    constexpr std::array<char, 9> kSettings = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    EXPECT_EQ(::write(accepted_, kSettings.data(), kSettings.size()),
              static_cast<ssize_t>(kSettings.size()));
  }

 private:
  const int listener_;
  int accepted_ = -1;
  int port_ = 0;
};

std::chrono::system_clock::time_point In(std::chrono::milliseconds time) {
  return std::chrono::system_clock::now() + time;
}

// A machine at work, a far server or TLS takes longer than a fresh listener on loopback.
TEST(Connection, WaitsForAServerThatIsLateToAnswer) {
  constexpr std::chrono::milliseconds kLate{400};
  constexpr std::chrono::seconds kPatience{15};
  LateServer server;
  Options options;
  options.server = server.address();
  const auto channel = OpenChannel(options);
  ASSERT_TRUE(channel.ok()) << channel.status();
  grpc_connectivity_state state = (*channel)->GetState(true);
  if (state == GRPC_CHANNEL_IDLE) {
    ASSERT_TRUE((*channel)->WaitForStateChange(state, In(kPatience)));
    state = (*channel)->GetState(true);
  }
  ASSERT_EQ(state, GRPC_CHANNEL_CONNECTING);
  EXPECT_FALSE((*channel)->WaitForStateChange(state, In(kLate))) << "the attempt was given up";
  server.Answer();
  EXPECT_TRUE((*channel)->WaitForConnected(In(kPatience)));
}

}  // namespace
}  // namespace pagoda::client
