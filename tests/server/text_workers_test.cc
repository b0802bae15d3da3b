#include "server/core/text_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "server/core/text_calls.h"
#include "tests/server/world.h"

namespace pagoda::server {
namespace {

class NoStreams final : public StreamRunner {
 public:
  void RunText(const ResponseStreamRef&) override {}
};

class Writes final : public TextCall {
 public:
  Writes(std::string& target, char letter) : target_(target), letter_(letter) {}
  void RunText() override { target_ += letter_; }

 private:
  std::string& target_;
  char letter_;
};

TEST(TextWorkers, TenantsAreServedInTurnHoweverMuchOneOfThemPosts) {
  NoStreams runner;
  TextWorkers workers({.num_threads = 0, .num_tenants = 3, .queue_capacity = 8}, runner);
  std::string order;
  for (int i = 0; i < 4; ++i) {
    workers.Post(base::TenantId{0}, std::make_unique<Writes>(order, 'a'));
  }
  workers.Post(base::TenantId{2}, std::make_unique<Writes>(order, 'c'));
  workers.Post(base::TenantId{1}, std::make_unique<Writes>(order, 'b'));
  workers.RunPending();
  EXPECT_EQ(order, "abcaaa");
}

TEST(TextWorkers, StopFinishesWhatIsQueued) {
  NoStreams runner;
  std::atomic<int> count = 0;
  class Counts final : public TextCall {
   public:
    explicit Counts(std::atomic<int>& target) : target_(target) {}
    void RunText() override { ++target_; }

   private:
    std::atomic<int>& target_;
  };
  TextWorkers workers({.num_threads = 2, .num_tenants = 1, .queue_capacity = 100}, runner);
  for (int i = 0; i < 100; ++i) workers.Post(base::TenantId{0}, std::make_unique<Counts>(count));
  workers.Stop();
  EXPECT_EQ(count.load(), 100);
}

TEST(TextWorkersDeathTest, AQueueOverItsPermitsIsOurBug) {
  NoStreams runner;
  std::string order;
  TextWorkers workers({.num_threads = 0, .num_tenants = 1, .queue_capacity = 1}, runner);
  workers.Post(base::TenantId{0}, std::make_unique<Writes>(order, 'a'));
  EXPECT_DEATH(workers.Post(base::TenantId{0}, std::make_unique<Writes>(order, 'a')), "permits");
}

}  // namespace
}  // namespace pagoda::server
