#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <set>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/process/server_fixture.h"

// Row F8: how a server ends, whatever it was doing.
namespace pagoda::process {
namespace {

using ::grpc::StatusCode;
using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckResponse;
using testing::HasSubstr;
using testing::Not;

constexpr int kHeldTokens = 2000;
// A small pool, because a test build looks through all of it after each step.
const std::vector<std::string> kPatient = {"--slow-reader-grace", "86400", "--kv-cache-memory",
                                           "2MiB"};

// Says pieces so long that a reply of kHeldTokens fills every buffer on the way to the client: the
// transport alone takes a few megabytes.
std::string LoudFile() {
  std::vector<std::string> pieces;
  for (const char letter : {'a', 'b', 'c', 'd'}) pieces.emplace_back(16'384, letter);
  return ChainFile(std::move(pieces), fixtures::ChainScript::End::kRepeat);
}

// A reply that has begun and that nobody reads: the server pauses it, and it stays until it is
// read or cut.
class HeldReply {
 public:
  explicit HeldReply(const Server& server)
      : stub_(v1::InferenceService::NewStub(server.NewChannel())) {
    reader_ = stub_->Generate(&context_, ChainRequest(kHeldTokens));
    v1::GenerateResponse first;
    EXPECT_TRUE(reader_->Read(&first));
    for (const auto& delta : first.deltas()) num_first_tokens_ += delta.token_ids_size();
  }
  // Reads the rest.
  Reply Rest() { return ReadAll(*reader_); }
  int num_first_tokens() const { return num_first_tokens_; }

 private:
  const std::unique_ptr<v1::InferenceService::Stub> stub_;  // on a connection of its own
  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::ClientReader<v1::GenerateResponse>> reader_;
  int num_first_tokens_ = 0;
};

// A reply that is read as it comes, on a thread of its own.
class ReadReply {
 public:
  ReadReply(Server& server, int max_tokens)
      : thread_(
            [this, &server, max_tokens] { reply_ = server.Generate(ChainRequest(max_tokens)); }) {}
  const Reply& Wait() {
    thread_.join();
    return reply_;
  }

 private:
  Reply reply_;
  std::jthread thread_;
};

std::vector<std::string> With(std::vector<std::string> flags,
                              const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

bool TwoWait(const v1::Stats& stats) { return stats.requests().waiting() == 2; }

TEST(Drain, HealthGoesFirstThenCallsAreRefusedAndWhatRunsOrWaitsIsFinished) {
  Server server(LoudFile(), With(kPatient, {"--max-num-seqs", "3", "--drain-timeout", "3600"}));
  HeldReply first(server), second(server), third(server);
  ReadReply fourth(server, 5), fifth(server, 6);
  ASSERT_TRUE(server.AwaitStats(TwoWait));
  ::grpc::ClientContext context;
  auto watch = Health::NewStub(server.NewChannel())->Watch(&context, {});
  HealthCheckResponse health;
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), HealthCheckResponse::SERVING);
  server.process.Signal(SIGTERM);
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), HealthCheckResponse::NOT_SERVING);

  const ::grpc::Status refused = server.Generate(ChainRequest(2)).status;
  EXPECT_EQ(refused.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(refused), "DRAINING");
  auto elsewhere = v1::InferenceService::NewStub(server.NewChannel());  // the port is still open
  ::grpc::ClientContext model_context;
  v1::Model model;
  EXPECT_EQ(ReasonOf(elsewhere->GetModel(&model_context, {}, &model)), "DRAINING");

  for (HeldReply* held : {&first, &second, &third}) {
    const Reply reply = held->Rest();
    EXPECT_TRUE(reply.status.ok()) << reply.status.error_message();
    EXPECT_EQ(held->num_first_tokens() + static_cast<int>(reply.tokens.size()), kHeldTokens);
  }
  EXPECT_EQ(fourth.Wait().tokens.size(), 5u);
  EXPECT_EQ(fifth.Wait().tokens.size(), 6u);
  EXPECT_EQ(server.process.Wait(), 0);
  EXPECT_THAT(server.process.log(), HasSubstr("stopped"));
}

TEST(Drain, WhatIsLeftWhenItsTimeIsOverEndsWithAReasonAndAReceipt) {
  constexpr int kEndlessTokens = 20'000;
  Server server(
      ChainFile({"ab", "cd"}, fixtures::ChainScript::End::kRepeat,
                {.weight_type = formats::GgufType::kF32, .context_length = kEndlessTokens + 1000}),
      {"--max-num-seqs", "1", "--drain-timeout", "0", "--kv-cache-memory", "6MiB"});
  ReadReply running(server, kEndlessTokens);
  ASSERT_TRUE(
      server.AwaitStats([](const v1::Stats& stats) { return stats.requests().running() == 1; }));
  ReadReply waiting(server, 5), another(server, 6);
  ASSERT_TRUE(server.AwaitStats(TwoWait));
  server.process.Signal(SIGTERM);

  const Reply& cut = running.Wait();
  EXPECT_EQ(cut.status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(cut.status), "SHUTDOWN");
  EXPECT_EQ(cut.finish.choices_size(), 0);
  EXPECT_EQ(cut.finish.receipt().generated_tokens(), static_cast<int>(cut.tokens.size()));
  EXPECT_LT(cut.finish.receipt().generated_tokens(), kEndlessTokens);
  EXPECT_GT(cut.finish.receipt().blocks_touched(), 0);
  for (ReadReply* queued : {&waiting, &another}) {
    const Reply& reply = queued->Wait();
    EXPECT_EQ(reply.status.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_EQ(ReasonOf(reply.status), "SHUTDOWN");
    EXPECT_TRUE(reply.finish.has_receipt());
    EXPECT_EQ(reply.finish.receipt().generated_tokens(), 0);
  }
  EXPECT_EQ(server.process.Wait(), 0);
  EXPECT_THAT(server.process.log(), HasSubstr("had not finished in time"));
}

TEST(Drain, ASecondSignalEndsTheProcessAtOnce) {
  Server server(LoudFile(), With(kPatient, {"--drain-timeout", "3600"}));
  HeldReply held(server);
  server.process.Signal(SIGTERM);
  ASSERT_TRUE(server.process.WaitForLog("draining"));
  server.process.Signal(SIGTERM);
  EXPECT_EQ(server.process.Wait(), 130);
  EXPECT_FALSE(held.Rest().status.ok());
  EXPECT_THAT(server.process.log(), Not(HasSubstr("stopped")));
}

// Also the calls that arrive while the listener closes, which gRPC by itself would cancel.
TEST(Drain, EveryCallUpToTheLastIsAnsweredOrRefusedAsUnavailable) {
  Server server(TinyFile(), kTinyFlags);
  std::mutex mutex;
  std::set<StatusCode> codes;
  std::atomic<int> num_started = 0;
  std::vector<std::jthread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      const auto stub = v1::InferenceService::NewStub(server.NewChannel());
      ::grpc::Status status;
      for (int call = 0; status.ok() || ReasonOf(status) == "DRAINING"; ++call) {
        ::grpc::ClientContext context;
        v1::Model model;
        status = stub->GetModel(&context, {}, &model);
        if (call == 0) ++num_started;
        const std::scoped_lock lock(mutex);
        codes.insert(status.error_code());
      }
    });
  }
  while (num_started.load() < 4) std::this_thread::yield();
  server.process.Signal(SIGTERM);
  clients.clear();
  EXPECT_EQ(codes, (std::set{StatusCode::OK, StatusCode::UNAVAILABLE}));
  EXPECT_EQ(server.process.Wait(), 0);
}

// Whether the signal meets the load or the serving, the server goes quietly. That a load ends
// between two tensors: tests/server/server_stack_test.cc.
TEST(Drain, ASignalWhileTheModelIsLoadingEndsTheServerToo) {
  ServerProcess process(With({"--model", TinyFile()}, kTinyFlags));
  ASSERT_TRUE(process.WaitForLog("loading "));
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_TRUE(process.WaitForLog("stopped")) << process.log();
}

}  // namespace
}  // namespace pagoda::process
