#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pagoda/v1/inference.grpc.pb.h"
#include "tests/process/server_process.h"

// models/tiny behind a real server: what it was told far back it can still say, and the answer is
// the same cold, from the cache and in company.

namespace pagoda::process {
namespace {

constexpr int kNumClients = 8;

struct Reply {
  std::string text;
  std::vector<std::uint32_t> tokens;
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  bool operator==(const Reply& other) const { return text == other.text && tokens == other.tokens; }
};

class Storyteller {
 public:
  Storyteller()
      : process_({"--model", PAGODA_SOURCE_DIR "/models/tiny", "--kv-cache-memory", "64MiB"}) {
    EXPECT_TRUE(process_.WaitForLog("serving ")) << process_.log();
    stub_ = v1::InferenceService::NewStub(
        ::grpc::CreateChannel(process_.address(), ::grpc::InsecureChannelCredentials()));
  }

  Reply Ask(const std::string& words, double temperature) {
    v1::ChatRequest request;
    v1::ChatMessage& message = *request.add_messages();
    message.set_role("user");
    message.set_content(words);
    request.mutable_sampling()->set_temperature(static_cast<float>(temperature));
    request.mutable_sampling()->set_seed(7);
    request.mutable_stop()->set_max_tokens(120);
    ::grpc::ClientContext context;
    const auto reader = stub_->Chat(&context, request);
    Reply reply;
    v1::GenerateResponse part;
    while (reader->Read(&part)) {
      for (const auto& delta : part.deltas()) {
        reply.text += delta.text();
        reply.tokens.insert(reply.tokens.end(), delta.token_ids().begin(), delta.token_ids().end());
      }
      reply.prompt_tokens = part.finish().receipt().prompt_tokens();
      reply.cached_tokens = part.finish().receipt().cached_tokens();
    }
    const ::grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

 private:
  ServerProcess process_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
};

// A person, where she lives and what she has; then sentences that say nothing of it, about 300
// tokens.
std::string LongStory() {
  std::string story =
      "Once there was a girl called Mira. Mira had a red kite. Mira lived in Tolvenham.\n";
  for (int i = 0; i < 3; ++i) {
    story +=
        "One morning the sun was warm and the sky was clear. Mira went to the harbour and sat down "
        "to rest. Mira sang a song while she worked. A bird sang in the tree. Mira opened the "
        "window and looked at the clouds. The road was long, but nobody was in a hurry. Mira was "
        "tired, but she did not want to stop.\n";
  }
  return story + "They never forgot that day. ";
}

TEST(ShippedModel, CopiesWhatItWasToldHundredsOfTokensBefore) {
  Storyteller storyteller;
  const Reply thing = storyteller.Ask(LongStory() + "What does Mira have?", 0);
  EXPECT_EQ(thing.text, "Mira has a red kite.");
  EXPECT_GT(thing.prompt_tokens, 250);
  const Reply town = storyteller.Ask(LongStory() + "Where does Mira live?", 0);
  EXPECT_EQ(town.text, "Mira lives in Tolvenham.");
  EXPECT_GT(town.cached_tokens, 200);
}

TEST(ShippedModel, TellsTheSameStoryColdFromTheCacheAndInCompany) {
  Storyteller storyteller;
  const std::string wish = "Tell me a story about a girl named Mira who has a red kite.";
  const Reply cold = storyteller.Ask(wish, 0.8);
  EXPECT_NE(cold.text.find("Mira"), std::string::npos) << cold.text;
  EXPECT_EQ(storyteller.Ask(wish, 0.8), cold);
  std::vector<Reply> replies(kNumClients);
  std::vector<std::jthread> clients;
  for (int i = 0; i < kNumClients; ++i) {
    clients.emplace_back([&, i] {
      storyteller.Ask("Tell me a story about number " + std::to_string(i) + ".", 0.8);
      replies[static_cast<std::size_t>(i)] = storyteller.Ask(wish, 0.8);
    });
  }
  clients.clear();
  for (const Reply& reply : replies) EXPECT_EQ(reply, cold);
}

}  // namespace
}  // namespace pagoda::process
