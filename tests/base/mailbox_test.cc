#include "base/runtime/mailbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pagoda::base {
namespace {

TEST(Mailbox, DeliversEverythingOfManyProducersInEachOnesOrder) {
  constexpr int kProducers = 4;
  constexpr int kEach = 1000;
  Mailbox<int> mailbox(kProducers * kEach);
  std::vector<std::jthread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&mailbox, p] {
      for (int i = 0; i < kEach; ++i) ASSERT_TRUE(mailbox.TryPush(p * kEach + i));
    });
  }
  std::vector<int> got;
  while (got.size() < kProducers * kEach) {
    mailbox.WaitUntil(Instant::Never());
    mailbox.Drain(got);
  }
  std::vector<int> next(kProducers, 0);
  for (int item : got) EXPECT_EQ(item % kEach, next[static_cast<std::size_t>(item / kEach)]++);
}

TEST(Mailbox, RefusesWhenFullOrClosed) {
  Mailbox<int> mailbox(1);
  EXPECT_TRUE(mailbox.TryPush(1));
  EXPECT_FALSE(mailbox.TryPush(2));
  std::vector<int> got;
  mailbox.Drain(got);
  mailbox.Close();
  EXPECT_FALSE(mailbox.TryPush(3));
  EXPECT_EQ(got, std::vector<int>{1});
}

TEST(Mailbox, WakeEndsAWait) {
  Mailbox<int> mailbox(1);
  std::jthread waker([&mailbox] { mailbox.Wake(); });
  mailbox.WaitUntil(Instant::Never());
  EXPECT_FALSE(mailbox.closed());
}

}  // namespace
}  // namespace pagoda::base
