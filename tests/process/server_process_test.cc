#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/process/server_fixture.h"

namespace pagoda::process {
namespace {

using ::grpc::StatusCode;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Replies that run: each has sent its first message.
class Mates {
 public:
  Mates(Server& server, std::uint32_t count, bool have_seeds) : calls_(count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      v1::GenerateRequest request = TinyRequest(9 + static_cast<int>(i), 100, i + 1);
      if (!have_seeds) request.mutable_sampling()->clear_seed();
      calls_[i].reader = server.stub->Generate(&calls_[i].context, request);
      v1::GenerateResponse first;
      EXPECT_TRUE(calls_[i].reader->Read(&first));
    }
  }
  ~Mates() {
    for (Call& call : calls_) {
      call.context.TryCancel();
      ReadAll(*call.reader);
    }
  }

 private:
  struct Call {
    ::grpc::ClientContext context;
    std::unique_ptr<::grpc::ClientReader<v1::GenerateResponse>> reader;
  };
  std::vector<Call> calls_;
};

TEST(ServerProcess, C3ASeededReplyIsTheSameFirstOrLastBesideMatesWithAndWithoutSeeds) {
  Server server(TinyFile(), kTinyFlags);
  const v1::GenerateRequest request = TinyRequest(9, 100);
  const Reply alone = server.Generate(request);
  ASSERT_TRUE(alone.status.ok()) << alone.status.error_message();
  for (const std::uint32_t count : {1, 3}) {
    for (const bool have_seeds : {false, true}) {
      {
        const Mates older(server, count, have_seeds);
        EXPECT_EQ(server.Generate(request).tokens, alone.tokens) << count << have_seeds;
      }
      ::grpc::ClientContext context;
      const auto reader = server.stub->Generate(&context, request);
      const Mates younger(server, count, have_seeds);
      EXPECT_EQ(ReadAll(*reader).tokens, alone.tokens) << count << have_seeds;
    }
  }
}

// The third measure of the work order: 32 streams equal their solo runs while 10 of them are
// cancelled.
TEST(ServerProcess, ThirtyTwoStreamsEqualSoloRunsWhileTenAreCancelled) {
  Server server(TinyFile(), kTinyFlags);
  const v1::Stats at_start = server.Stats();
  const auto available = [](const v1::Stats& stats) {
    return stats.blocks().free() + stats.blocks().cached();
  };
  EXPECT_EQ(available(at_start) + 1, at_start.blocks().total());
  std::vector<Reply> solo;
  for (std::uint32_t i = 0; i < 32; ++i) {
    solo.push_back(
        server.Generate(TinyRequest(3 + static_cast<int>(i), 5 + static_cast<int>(i), i)));
    ASSERT_TRUE(solo.back().status.ok()) << solo.back().status.error_message();
  }
  std::atomic<int> equal = 0;
  std::vector<std::jthread> clients;
  for (std::uint32_t i = 0; i < 32; ++i) {
    clients.emplace_back([&, i] {
      ::grpc::ClientContext context;
      auto reader = server.stub->Generate(
          &context, TinyRequest(3 + static_cast<int>(i), 5 + static_cast<int>(i), i));
      if (i % 3 == 0 && i < 30) {
        v1::GenerateResponse first;
        EXPECT_TRUE(reader->Read(&first));
        context.TryCancel();
        ReadAll(*reader);
        return;
      }
      const Reply reply = ReadAll(*reader);
      equal += reply.status.ok() && reply.tokens == solo[i].tokens && reply.text == solo[i].text;
    });
  }
  clients.clear();
  EXPECT_EQ(equal.load(), 22);
  // What has been cancelled may still be on its way out.
  EXPECT_TRUE(server.AwaitStats([&](const v1::Stats& stats) {
    const v1::RequestStats& requests = stats.requests();
    return requests.running() + requests.waiting() == 0 &&
           requests.completed() + requests.cancelled() == requests.accepted() &&
           available(stats) == available(at_start);
  }));
  const v1::RequestStats requests = server.Stats().requests();
  EXPECT_EQ(requests.accepted() - at_start.requests().accepted(), 32 + 32);
  EXPECT_EQ(requests.failed(), 0);
  // Row E9: an end is no cancel. One that is told to go may have finished before.
  EXPECT_LE(requests.cancelled() - at_start.requests().cancelled(), 10);
  EXPECT_GE(requests.completed() - at_start.requests().completed(), 32 + 22);
  server.process.Signal(SIGTERM);
  EXPECT_EQ(server.process.Wait(), 0);
}

// Rows E7 and C6: the edges of lengths and values, each beside a sound request.
TEST(ServerProcess, EdgesOfLengthsAndValuesHaveTheirCodesAndTheServerGoesOn) {
  Server server(TinyFile(), kTinyFlags);
  v1::Model model;
  ::grpc::ClientContext context;
  ASSERT_TRUE(server.stub->GetModel(&context, {}, &model).ok());
  const int limit = model.max_model_len();
  const auto code = [&](const v1::GenerateRequest& request) {
    return server.Generate(request).status.error_code();
  };
  EXPECT_EQ(code(TinyRequest(0, 1)), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code(TinyRequest(limit - 1, 1)), StatusCode::OK);
  EXPECT_EQ(code(TinyRequest(limit, 1)), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code(TinyRequest(limit + 1, 1)), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code(TinyRequest(1, limit)), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(server.Generate(TinyRequest(1, limit - 1)).finish.choices(0).reason(),
            v1::FINISH_REASON_LENGTH);
  v1::GenerateRequest text = TinyRequest(1, 1);
  text.set_text("");
  EXPECT_EQ(code(text), StatusCode::INVALID_ARGUMENT);
  v1::GenerateRequest echoed = TinyRequest(limit - 1, 1);
  echoed.mutable_output()->set_echo(true);
  EXPECT_EQ(code(echoed), StatusCode::OK);
  const auto changed = [&](const std::function<void(v1::GenerateRequest&)>& change) {
    v1::GenerateRequest request = TinyRequest(3, 2);
    change(request);
    return code(request);
  };
  using Request = v1::GenerateRequest;
  EXPECT_EQ(changed([](Request& r) { r.mutable_stop()->set_max_tokens(0); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(changed([](Request& r) { r.mutable_sampling()->set_top_p(0); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(changed([](Request& r) { r.mutable_sampling()->set_top_k(9'999'999); }),
            StatusCode::OK);
  EXPECT_EQ(changed([](Request& r) { r.mutable_token_ids()->set_ids(0, 1'000'000); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(changed([](Request& r) { (*r.mutable_sampling()->mutable_logit_bias())[100'000] = 1; }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code(TinyRequest(3, 2)), StatusCode::OK);
}

// Row I4: the limit is each request's own, however many run; nothing of a prompt is cut, and a
// reply that reaches the limit ends there.
TEST(ServerProcess, I4_TheContextIsEachRequestsOwnAndNotDividedAmongThem) {
  constexpr int kLimit = 200, kSequences = 10;
  std::vector<std::string> flags = kTinyFlags;
  flags.insert(flags.end(), {"--max-model-len", std::to_string(kLimit), "--max-num-seqs",
                             std::to_string(kSequences)});
  Server server(TinyFile(), flags);
  v1::Model model;
  ::grpc::ClientContext context;
  ASSERT_TRUE(server.stub->GetModel(&context, {}, &model).ok());
  EXPECT_EQ(model.max_model_len(), kLimit);
  EXPECT_EQ(model.max_num_seqs(), kSequences);
  std::vector<Reply> replies(kSequences);
  std::vector<std::jthread> clients;
  for (int i = 0; i < kSequences; ++i) {
    clients.emplace_back([&, i] {
      v1::GenerateRequest request = TinyRequest(100 + 10 * i, 1, static_cast<std::uint32_t>(i));
      request.mutable_stop()->clear_max_tokens();
      replies[static_cast<std::size_t>(i)] = server.Generate(request);
    });
  }
  clients.clear();
  for (int i = 0; i < kSequences; ++i) {
    const Reply& reply = replies[static_cast<std::size_t>(i)];
    ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
    EXPECT_EQ(reply.finish.receipt().prompt_tokens(), 100 + 10 * i);
    EXPECT_EQ(reply.finish.receipt().generated_tokens(), kLimit - 100 - 10 * i);
    EXPECT_EQ(reply.finish.choices(0).reason(), v1::FINISH_REASON_LENGTH);
  }
}

// Row F2: what is too long for the model is told so, what is too large for a message gets the
// limit.
TEST(ServerProcess, LargePromptsAreRefusedWithTheLimitTheyBreak) {
  Server server(TinyFile(), kTinyFlags);
  v1::GenerateRequest request;
  request.set_text(std::string(5 << 20, 'a'));
  Reply reply = server.Generate(request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(reply.status), "CONTEXT_TOO_LONG");
  std::vector<std::string> flags = kTinyFlags;
  flags.insert(flags.end(), {"--max-request-size", "1KiB"});
  Server narrow(TinyFile(), flags);
  request.set_text(std::string(2000, 'a'));
  reply = narrow.Generate(request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(reply.status.error_message(), HasSubstr("1024"));
  EXPECT_TRUE(narrow.Generate(TinyRequest(3, 2)).status.ok());
}

// Row F2, the way back: scores of a long prompt come in parts, however many rows a step may have.
TEST(ServerProcess, ScoresOfALongPromptComeInMessagesThatAnyClientTakes) {
  constexpr int kPrompt = 1900;
  const std::string path = FreshFile("-long-tiny.gguf");
  ASSERT_TRUE(fixtures::WriteTinyGguf(path, {.context_length = 2048}).ok());
  Server server(
      path, {"--block-size", "4", "--max-num-seqs", "1024", "--max-num-batched-tokens", "2048"});
  v1::GenerateRequest request = TinyRequest(kPrompt, 2);
  request.mutable_output()->set_prompt_logprobs(20);
  ::grpc::ClientContext context;
  const auto reader = server.stub->Generate(&context, request);
  v1::GenerateResponse part;
  int num_scores = 0;
  std::size_t largest = 0;
  while (reader->Read(&part)) {
    num_scores += part.prompt().logprobs_size();
    largest = std::max(largest, part.ByteSizeLong());
  }
  const ::grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(num_scores, kPrompt - 1);
  EXPECT_LT(largest, 4u << 20);
}

// The tokens of a reply, and the bits of their log-probabilities.
std::vector<std::pair<std::uint32_t, std::uint32_t>> ScoredTokens(
    Server& server, const v1::GenerateRequest& request, int& cached) {
  ::grpc::ClientContext context;
  const auto reader = server.stub->Generate(&context, request);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tokens;
  v1::GenerateResponse part;
  while (reader->Read(&part)) {
    for (const auto& delta : part.deltas()) {
      for (const auto& each : delta.logprobs()) {
        tokens.emplace_back(each.token_id(), std::bit_cast<std::uint32_t>(each.logprob()));
      }
    }
    if (part.has_finish()) cached = part.finish().receipt().cached_tokens();
  }
  EXPECT_TRUE(reader->Finish().ok());
  return tokens;
}

// The first of five computes its whole prompt in one step, the others one token of it on what the
// cache has: the replies are equal in every bit, with each kind of activations and of KV.
TEST(ServerProcess, D10OnePromptFiveTimesHasOneReplyAtLengthsAroundABlock) {
  constexpr int kReply = 12;
  const std::vector<std::vector<std::string>> kinds = {
      {"--activation-dtype", "f32", "--kv-cache-dtype", "f32"},
      {"--activation-dtype", "f32", "--kv-cache-dtype", "bf16"},
      {"--activation-dtype", "int8"},
      {"--device", "emulated-cuda", "--activation-dtype", "bf16"}};
  for (const std::vector<std::string>& kind : kinds) {
    std::vector<std::string> flags = kTinyFlags;
    flags.insert(flags.end(), kind.begin(), kind.end());
    Server server(TinyFile(), flags);
    for (const int length : {1, 3, 4, 5, 8, 9}) {
      SCOPED_TRACE(kind.back() + ", length " + std::to_string(length));
      v1::GenerateRequest request = TinyRequest(length, kReply, static_cast<std::uint32_t>(length));
      request.mutable_sampling()->set_temperature(0);
      request.mutable_output()->set_logprobs(0);
      int cached = -1;
      const auto first = ScoredTokens(server, request, cached);
      EXPECT_EQ(first.size(), kReply);
      EXPECT_EQ(cached, 0);
      for (int again = 1; again < 5; ++again) {
        EXPECT_EQ(ScoredTokens(server, request, cached), first);
        EXPECT_EQ(cached, length - 1);
      }
    }
  }
}

// Row B1: a stop string over several tokens never leaks, and what only looked like one comes in
// full.
TEST(ServerProcess, AStopStringOverSeveralTokensNeverLeaksItsBeginning) {
  Server server(ChainFile({"KL", "M", "NO", "P", "Q"}));
  v1::GenerateRequest request = ChainRequest(10);
  request.mutable_stop()->add_stop("KLMNOP");
  Reply reply = server.Generate(request);
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_EQ(reply.text, "");
  EXPECT_EQ(reply.finish.choices(0).reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(reply.finish.choices(0).matched_stop(), 0u);
  request.mutable_stop()->set_stop(0, "KLMNOQ");
  EXPECT_EQ(server.Generate(request).text, "KLMNOPQ");
}

// Row B3: stops count only from min_tokens on.
TEST(ServerProcess, NoStopStringEndsAReplyBelowMinTokens) {
  Server server(ChainFile({"a", "x\n", "b", "y\n", "c", "z\n", "d"}));
  v1::GenerateRequest request = ChainRequest(20);
  request.mutable_stop()->add_stop("\n");
  request.mutable_stop()->set_min_tokens(5);
  const Reply reply = server.Generate(request);
  EXPECT_EQ(reply.text, "ax\nby\ncz");
  EXPECT_EQ(reply.tokens.size(), 6u);
}

// Rows A2, A3, A4: bytes that are no text, in the middle and cut by the limit.
TEST(ServerProcess, BytesThatAreNoTextBecomeReplacementCharacters) {
  Server server(ChainFile({"\xEC\x84", "\xFF", "a", "\xE2\x82", "b", "\xF0\x9F\x90"}));
  const Reply whole = server.Generate(ChainRequest(5));
  EXPECT_TRUE(whole.status.ok());
  EXPECT_EQ(whole.text, "\uFFFD\uFFFDa\uFFFDb");
  EXPECT_EQ(whole.finish.receipt().generated_tokens(), 5);
  EXPECT_EQ(server.Generate(ChainRequest(6)).text, "\uFFFD\uFFFDa\uFFFDb\uFFFD");
}

// Row E9, small: dropped clients leave nothing behind. Row J4: nothing they sent is in the log.
TEST(ServerProcess, DroppedClientsLeaveNothingBehindAndNoWordInTheLog) {
  Server server(ChainFile({"MARKERWORD"}), {"--max-queued-requests", "4", "--max-num-seqs", "4"});
  for (int i = 0; i < 50; ++i) {
    ::grpc::ClientContext context;
    auto reader = server.stub->Generate(&context, ChainRequest(4000));
    context.TryCancel();
    ReadAll(*reader);
  }
  // With four permits, fifty that leaked would shut the door for good; the last few may still be on
  // their way out.
  bool served = false;
  for (int attempt = 0; attempt < 10'000 && !served; ++attempt) {
    served = server.Generate(ChainRequest(1)).status.ok();
  }
  EXPECT_TRUE(served);
  server.process.Signal(SIGTERM);
  EXPECT_EQ(server.process.Wait(), 0);
  EXPECT_THAT(server.process.log(), Not(HasSubstr("MARKERWORD")));
  EXPECT_THAT(server.process.log(), HasSubstr("stopped"));
}

// Row J4: whatever a caller sends and however it ends, one line and not a word of it.
TEST(ServerProcess, EveryRequestIsOneLineOfTheLogAndNoWordOfIt) {
  constexpr int kEach = 20;
  Server server(ChainFile({"MARKERWORD"}, fixtures::ChainScript::End::kRepeat));
  for (int i = 0; i < kEach; ++i) {
    v1::GenerateRequest good = ChainRequest(40);
    good.set_text("MARKERWORD>");
    EXPECT_TRUE(server.Generate(good).status.ok());
    v1::GenerateRequest bad = ChainRequest(1);
    bad.mutable_stop()->add_stop("MARKERWORD");
    bad.mutable_stop()->add_stop_token_ids(1'000'000);
    EXPECT_EQ(server.Generate(bad).status.error_code(), StatusCode::INVALID_ARGUMENT);
    bad.set_text("MARKERWORD\xFF\xFE");
    EXPECT_EQ(server.Generate(bad).status.error_code(), StatusCode::INVALID_ARGUMENT);
    ::grpc::ClientContext context;
    auto reader = server.stub->Generate(&context, ChainRequest(400));
    v1::GenerateResponse first;
    EXPECT_TRUE(reader->Read(&first));
    context.TryCancel();
    ReadAll(*reader);
  }
  server.process.Signal(SIGTERM);
  EXPECT_EQ(server.process.Wait(), 0);
  EXPECT_TRUE(server.process.WaitForLog("stopped"));
  const std::string log = server.process.log();
  EXPECT_THAT(log, Not(HasSubstr("MARKERWORD")));
  EXPECT_THAT(log, HasSubstr("client_id=server:warm-up"));
  constexpr int kOtherLines = 12;  // of the start and the end
  EXPECT_LE(std::ranges::count(log, '\n'), 3 * kEach + kOtherLines);
  EXPECT_GE(std::ranges::count(log, '\n'), 2 * kEach);
}

TEST(ServerProcess, BadStartUpsSayWhatIsWrongAndExitWithAnError) {
  const auto run = [](const std::vector<std::string>& flags) {
    ServerProcess process(flags);
    EXPECT_NE(process.Wait(), 0);
    process.WaitForLog("this text never comes");
    return process.log();
  };
  EXPECT_THAT(run({"--model", "no/such.gguf"}), HasSubstr("no/such.gguf"));
  const std::string cut = TinyFile();
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 1000);
  EXPECT_THAT(run({"--model", cut}), AllOf(HasSubstr(cut), HasSubstr("fetch it again")));
  EXPECT_THAT(run({"--model", cut, "--check-config"}),
              AllOf(HasSubstr(cut), Not(HasSubstr("is valid"))));
  const std::string whole = TinyFile();
  EXPECT_THAT(run({"--model", whole, "--no-such-flag"}), HasSubstr("no-such-flag"));
  Server first(whole, kTinyFlags);
  std::vector<std::string> taken = kTinyFlags;
  taken.insert(taken.end(), {"--model", whole, "--listen", first.process.address()});
  EXPECT_THAT(run(taken), AllOf(HasSubstr("cannot listen on"), Not(HasSubstr("chttp2"))));
  std::vector<std::string> small = kTinyFlags;
  small.insert(small.end(), {"--model", whole, "--kv-cache-memory", "1KiB"});
  EXPECT_THAT(run(small), HasSubstr("--kv-cache-memory"));
  EXPECT_THAT(run({"--model", whole, "--check-config", "--max-model-len", "100000"}),
              HasSubstr("max-model-len is 100000"));
  ServerProcess valid({"--model", whole, "--check-config"});
  EXPECT_EQ(valid.Wait(), 0);
}

}  // namespace
}  // namespace pagoda::process
