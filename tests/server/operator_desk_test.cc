#include "server/core/operator_desk.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace pagoda::server {
namespace {

TEST(OperatorDesk, CarriesOutOneAfterAnotherAndAllBeforeItStops) {
  std::string done;
  OperatorDesk desk;
  for (const char c : {'a', 'b', 'c'}) {
    EXPECT_TRUE(desk.TryPost([&done, c] { done += c; }));
  }
  desk.Stop();
  EXPECT_EQ(done, "abc");
  EXPECT_FALSE(desk.TryPost([] {}));
}

TEST(OperatorDesk, TakesNoMoreThanItCanHold) {
  std::atomic<bool> release = false;
  std::atomic<bool> begun = false;
  OperatorDesk desk;
  ASSERT_TRUE(desk.TryPost([&] {
    begun = true;
    while (!release.load()) std::this_thread::yield();
  }));
  while (!begun.load()) std::this_thread::yield();
  int num_taken = 0;
  while (desk.TryPost([] {})) ++num_taken;
  EXPECT_EQ(num_taken, 16);
  release = true;
}

TEST(OperatorDesk, AsksUntilWhatItBeganIsSettled) {
  std::atomic<int> num_questions = 0;
  std::atomic<bool> settled = false;
  OperatorDesk desk([&] {
    settled = ++num_questions == 3;
    return settled.load();
  });
  ASSERT_TRUE(desk.TryPost([] {}));
  while (!settled.load()) std::this_thread::yield();
  EXPECT_EQ(num_questions.load(), 3);
}

}  // namespace
}  // namespace pagoda::server
