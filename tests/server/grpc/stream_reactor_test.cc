#include "server/grpc/stream_reactor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

using ::grpc::StatusCode;

std::string ExpectedText(int length) {
  std::string text;
  for (int i = 0; i < length; ++i) text += static_cast<char>('a' + i % 8);
  return text;
}

World::Options Roomy() {
  World::Options options;
  options.max_requests = 64;
  options.max_model_len = 5000;
  return options;
}

TEST(StreamReactor, AStreamEndsWithOneFinishAndTheWholeText) {
  DoorWorld door(Roomy());
  const WholeReply reply = Generate(*door.stub, TextRequest("abc", 300));
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.text, ExpectedText(300));
  EXPECT_EQ(reply.tokens.size(), 300u);
  EXPECT_EQ(reply.num_finishes, 1);
  EXPECT_EQ(reply.finish.receipt().generated_tokens(), 300);
}

// Work order: 32 streams of different lengths equal solo runs while 10 are cancelled, and nothing
// is left.
TEST(StreamReactor, ThirtyTwoStreamsEndWholeWhileTenOfThemAreCancelled) {
  DoorWorld door(Roomy());
  std::vector<std::jthread> clients;
  std::atomic<int> whole = 0;
  std::atomic<int> cancelled = 0;
  for (int c = 0; c < 32; ++c) {
    clients.emplace_back([&, c] {
      ::grpc::ClientContext context;
      const bool cut = c % 3 == 0 && c < 30;
      const int length = cut ? 4000 : 10 + c * 20;
      auto reader = door.stub->Generate(&context, TextRequest("a", length));
      if (cut) {
        v1::GenerateResponse first;
        EXPECT_TRUE(reader->Read(&first));
        context.TryCancel();
      }
      const WholeReply reply = ReadAll(*reader);
      if (cut) {
        cancelled += reply.status.error_code() == StatusCode::CANCELLED || reply.status.ok();
      } else {
        whole += reply.status.ok() && reply.text == ExpectedText(length);
      }
    });
  }
  clients.clear();
  EXPECT_EQ(whole.load(), 22);
  EXPECT_EQ(cancelled.load(), 10);
  EXPECT_TRUE(door.world.pipeline.WaitUntilEmpty(base::SystemClock().Now().PlusMillis(60'000)));
}

// Row F4: deadlines that fall together with the end.
TEST(StreamReactor, DeadlinesRacingWithTheEndLeaveOneStatusPerCall) {
  DoorWorld door(Roomy());
  std::vector<std::jthread> clients;
  std::atomic<int> ended = 0;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 100; ++i) {
        ::grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::microseconds(500 * (1 + (c * 7 + i) % 20)));
        const WholeReply reply =
            ReadAll(*door.stub->Generate(&context, TextRequest("a", 20 * i + 1)));
        const StatusCode code = reply.status.error_code();
        EXPECT_TRUE(code == StatusCode::OK || code == StatusCode::DEADLINE_EXCEEDED ||
                    code == StatusCode::CANCELLED)
            << code << " " << reply.status.error_message();
        ++ended;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(ended.load(), 400);
  EXPECT_TRUE(door.world.pipeline.WaitUntilEmpty(base::SystemClock().Now().PlusMillis(60'000)));
}

// Row F6 at the door: a client that never reads.
TEST(StreamReactor, AClientThatNeverReadsIsBoundedAndCutWhileOthersRun) {
  World::Options options = Roomy();
  options.max_model_len = 200'000;
  for (std::string& piece : options.pieces) piece = std::string(4096, piece[0]);
  DoorWorld door(options);
  const auto request = [](std::int32_t max_tokens) {
    v1::GenerateRequest made;
    made.mutable_token_ids()->add_ids(0);
    made.mutable_stop()->set_max_tokens(max_tokens);
    return made;
  };
  ::grpc::ClientContext context;
  auto silent = door.stub->Generate(&context, request(150'000));
  // The transport takes a few megabytes before it pushes back; the pause says that it has.
  while (door.world.pipeline.metrics().pauses.value() == 0) std::this_thread::yield();
  EXPECT_EQ(Generate(*door.stub, request(20)).text.size(), 20u * 4096u);
  context.TryCancel();
  EXPECT_EQ(ReadAll(*silent).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(door.world.pipeline.WaitUntilEmpty(base::SystemClock().Now().PlusMillis(60'000)));
}

}  // namespace
}  // namespace pagoda::server
