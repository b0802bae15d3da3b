#include "server/grpc/doorway.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace pagoda::server {
namespace {

constexpr auto kLong = std::chrono::minutes(10);

TEST(Doorway, NobodyIsLetInOnceItIsClosed) {
  Doorway doorway;
  EXPECT_TRUE(doorway.LetIn());
  doorway.Close();
  EXPECT_FALSE(doorway.LetIn());
  EXPECT_FALSE(doorway.WaitUntilEmpty(std::chrono::steady_clock::now()));
  doorway.Arrived();
  EXPECT_TRUE(doorway.WaitUntilEmpty(std::chrono::steady_clock::now()));
}

TEST(Doorway, TheWaitEndsWithTheLastArrival) {
  Doorway doorway;
  ASSERT_TRUE(doorway.LetIn());
  ASSERT_TRUE(doorway.LetIn());
  doorway.Close();
  std::jthread arrivals([&doorway] {
    doorway.Arrived();
    doorway.Arrived();
  });
  EXPECT_TRUE(doorway.WaitUntilEmpty(std::chrono::steady_clock::now() + kLong));
}

}  // namespace
}  // namespace pagoda::server
