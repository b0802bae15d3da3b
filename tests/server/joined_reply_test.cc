#include "server/core/joined_reply.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/server/world.h"

namespace pagoda::server {
namespace {

// With real threads everywhere: text workers, an engine, and readers that come and go. What each
// reply must be is known from the script alone.
class ThreadedWorld {
 public:
  explicit ThreadedWorld(const World::Options& options) : world(options) {
    engine_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (!world.engine.StepAll(8)) std::this_thread::yield();
      }
    });
  }
  World world;

 private:
  std::jthread engine_;
};

std::string ExpectedText(int length) {
  std::string text;
  for (int i = 0; i < length; ++i) text += static_cast<char>('a' + i % 8);
  return text;
}

World::Options Threaded() {
  World::Options options;
  options.num_text_threads = 2;
  options.max_requests = 64;
  options.max_model_len = 500;
  options.stream = {.ring_tokens = 32, .pause_at = 16, .resume_at = 4};
  return options;
}

TEST(JoinedReply, ConcurrentRepliesAreWholeThroughPausesAndResumes) {
  ThreadedWorld threaded(Threaded());
  std::vector<std::jthread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&threaded, c] {
      for (int turn = 0; turn < 20; ++turn) {
        const int length = 1 + (c * 37 + turn * 11) % 200;
        JoinedReply reply;
        auto stream =
            threaded.world.pipeline.Start(threaded.world.caller, World::Ids({0}, length), reply);
        ASSERT_TRUE(stream.ok());
        const ReplyPart& whole = reply.Wait(**stream);
        EXPECT_TRUE(whole.end->status.ok());
        EXPECT_EQ(whole.choices[0].text, ExpectedText(length));
        EXPECT_EQ(whole.end->receipt.generated_tokens, length);
      }
    });
  }
  clients.clear();
  EXPECT_EQ(threaded.world.pipeline.num_live(), 0);
}

// Row F4 at the core: a cancel that races with the end leaves one end state and nothing behind.
TEST(JoinedReply, CancelsThatRaceWithTheEndLeaveOneEndAndNothingBehind) {
  ThreadedWorld threaded(Threaded());
  std::atomic<int> ended = 0;
  std::vector<std::jthread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&threaded, &ended, c] {
      for (int turn = 0; turn < 50; ++turn) {
        JoinedReply reply;
        auto stream = threaded.world.pipeline.Start(threaded.world.caller,
                                                    World::Ids({0}, 1 + (c + turn) % 5), reply);
        ASSERT_TRUE(stream.ok());
        for (int spin = 0; spin < turn * 20; ++spin) std::this_thread::yield();
        std::jthread canceller([&stream] { (*stream)->Cancel(); });
        const absl::Status status = reply.Wait(**stream).end->status;
        EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status.ToString();
        ++ended;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(ended.load(), 400);
  EXPECT_TRUE(threaded.world.pipeline.WaitUntilEmpty(base::SystemClock().Now().PlusMillis(60'000)));
  EXPECT_EQ(threaded.world.pipeline.num_live(), 0);
}

TEST(JoinedReply, TheWarmUpRunsThroughTheEngineBeforeTheServerServes) {
  World::Options options = Threaded();
  options.serving = false;
  ThreadedWorld threaded(options);
  EXPECT_TRUE(threaded.world.pipeline.WarmUp().ok());
  EXPECT_EQ(threaded.world.pipeline.num_live(), 0);
}

}  // namespace
}  // namespace pagoda::server
