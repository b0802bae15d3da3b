// The whole `bench` command against a server that answers from a script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/client/command_session.h"
#include "tests/fakes/fake_inference_service.h"

namespace pagoda::client {
namespace {

using fakes::FakeInferenceService;
using testing::HasSubstr;

FakeInferenceService::Script ThreeTokens() {
  FakeInferenceService::Script script;
  for (std::uint32_t id = 1; id <= 3; ++id) {
    v1::GenerateResponse response;
    response.add_deltas()->add_token_ids(id);
    script.replies.push_back(response);
  }
  v1::Finish& finish = *script.replies.back().mutable_finish();
  finish.mutable_receipt()->set_prompt_tokens(20);
  finish.mutable_receipt()->set_cached_tokens(16);
  finish.mutable_receipt()->set_generated_tokens(3);
  script.model.set_vocabulary_size(100);
  script.model.set_max_model_len(64);
  return script;
}

TEST(Bench, SendsWhatWasPlannedAndSumsTheReceipts) {
  FakeInferenceService service(ThreeTokens());
  CommandSession session;
  EXPECT_EQ(session.Run({"bench", "--server", service.address(), "--requests", "12",
                         "--concurrency", "3", "--input-len", "4..8", "--output-len", "3",
                         "--shared-prefix", "12", "--seed", "9", "--json"}),
            kExitOk)
      << session.text() << session.err.str();
  const auto json = nlohmann::json::parse(session.text());
  EXPECT_EQ(json["finished"], 12);
  EXPECT_EQ(json["output_tokens"], 36);
  EXPECT_EQ(json["receipts"]["cached_tokens"], 12 * 16);
  EXPECT_EQ(json["milliseconds"]["first_token"]["count"], 12);
  EXPECT_EQ(json["milliseconds"]["inter_token"]["count"], 24);
  const auto requests = service.generate_requests();
  ASSERT_EQ(requests.size(), 12u);
  std::set<std::string> prompts;
  for (const v1::GenerateRequest& request : requests) {
    const auto& ids = request.token_ids().ids();
    EXPECT_THAT(ids.size(), testing::AllOf(testing::Ge(16), testing::Le(20)));
    EXPECT_TRUE(std::equal(ids.begin(), ids.begin() + 12, requests[0].token_ids().ids().begin()));
    EXPECT_EQ(request.stop().max_tokens(), 3);
    EXPECT_TRUE(request.stop().ignore_eos());
    prompts.insert(request.token_ids().SerializeAsString());
  }
  EXPECT_EQ(prompts.size(), 12u);
}

TEST(Bench, AnOpenLoopShowsTheTimesFromTheSendingToo) {
  FakeInferenceService service(ThreeTokens());
  CommandSession session;
  EXPECT_EQ(session.Run({"bench", "--server", service.address(), "--requests", "20", "--rate",
                         "500", "--max-in-flight", "4", "--input-len", "8", "--output-len", "3"}),
            kExitOk);
  EXPECT_THAT(session.text(),
              HasSubstr("open loop, 500 requests/s (Poisson), at most 4 in flight"));
  EXPECT_THAT(session.text(), HasSubstr("sent late by"));
  EXPECT_THAT(session.text(), HasSubstr("400 prompt tokens (320 cached, 80.0 %), 60 generated"));
  EXPECT_EQ(session.err.str(), "");
}

TEST(Bench, FailuresAreCountedByCodeAndSetTheExitCode) {
  FakeInferenceService::Script script = ThreeTokens();
  script.replies.clear();
  FakeInferenceService service(script);
  CommandSession session;
  EXPECT_EQ(session.Run({"bench", "--server", service.address(), "--requests", "5", "--input-len",
                         "8", "--output-len", "3"}),
            kExitFailed);
  EXPECT_THAT(session.text(), HasSubstr("ENDED_WITHOUT_FINISH 5"));
  EXPECT_THAT(session.text(), HasSubstr("none measured"));
}

TEST(Bench, LengthsThatCannotBeServedAreRefusedBeforeTheRun) {
  FakeInferenceService service(ThreeTokens());
  CommandSession session;
  EXPECT_EQ(session.Run({"bench", "--server", service.address(), "--requests", "5", "--input-len",
                         "8..60", "--output-len", "5"}),
            kExitFailed);
  EXPECT_THAT(session.err.str(), HasSubstr("65 tokens, the server takes 64"));
  EXPECT_TRUE(service.generate_requests().empty());
}

TEST(Bench, AnInterruptEndsItAndCancelsWhatRuns) {
  FakeInferenceService::Script script = ThreeTokens();
  script.replies.pop_back();
  script.waits_for_cancel = true;
  FakeInferenceService service(script);
  CommandSession session;
  std::jthread interrupter([&] {
    while (service.generate_requests().size() < 2) std::this_thread::yield();
    EXPECT_TRUE(session.interrupts.Trigger());
  });
  EXPECT_EQ(session.Run({"bench", "--server", service.address(), "--duration", "3600",
                         "--concurrency", "2", "--input-len", "8", "--output-len", "3"}),
            kExitFailed);
  EXPECT_THAT(session.text(), HasSubstr(", interrupted"));
  EXPECT_THAT(session.text(), HasSubstr("Failures  none"));
}

TEST(Bench, FlagsThatDoNotGoTogetherAreRefused) {
  CommandSession session;
  EXPECT_EQ(session.Run({"bench"}), kExitUsage);
  EXPECT_THAT(session.err.str(), HasSubstr("--requests or --duration"));
  EXPECT_EQ(session.Run({"bench", "--requests", "1", "--rate", "1", "--concurrency", "2"}),
            kExitUsage);
  EXPECT_EQ(session.Run({"bench", "--requests", "1", "--max-in-flight", "2"}), kExitUsage);
  EXPECT_EQ(session.Run({"bench", "--requests", "1", "--input-len", "0"}), kExitUsage);
  EXPECT_THAT(session.err.str(), HasSubstr("0 is not N or N..M"));
}

}  // namespace
}  // namespace pagoda::client
