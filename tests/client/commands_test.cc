#include "client/commands.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/client/command_session.h"
#include "tests/fakes/fake_inference_service.h"

namespace pagoda::client {
namespace {

using fakes::FakeInferenceService;
using Health = grpc::health::v1::HealthCheckResponse;

v1::GenerateResponse Piece(const std::string& text, const std::vector<std::uint32_t>& ids) {
  v1::GenerateResponse response;
  response.set_request_id("r-1");
  v1::ChoiceDelta& delta = *response.add_deltas();
  delta.set_text(text);
  for (const std::uint32_t id : ids) delta.add_token_ids(id);
  return response;
}

v1::GenerateResponse End(v1::FinishReason reason) {
  v1::GenerateResponse response;
  response.set_request_id("r-1");
  v1::Finish& finish = *response.mutable_finish();
  finish.add_choices()->set_reason(reason);
  finish.set_seed(99);
  finish.mutable_receipt()->set_prompt_tokens(4);
  finish.mutable_receipt()->set_generated_tokens(3);
  finish.mutable_receipt()->set_block_steps(12);
  return response;
}

FakeInferenceService::Script HelloScript() {
  FakeInferenceService::Script script;
  script.replies = {Piece("Hel", {1}), Piece("", {2}), Piece("lo\xC3\xA9", {3}),
                    End(v1::FINISH_REASON_STOP)};
  return script;
}

// Runs of the command against a server.
struct Session : CommandSession {
  int Run(std::vector<std::string> arguments, const std::string& address) {
    arguments.insert(arguments.end(), {"--server", address});
    return CommandSession::Run(arguments);
  }
};

TEST(Generate, PrintsTheTextAndNothingElse) {
  FakeInferenceService service(HelloScript());
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt", "hi", "--top-k", "0"}, service.address()),
            kExitOk);
  EXPECT_EQ(session.out_buffer.str(), "Hello\xC3\xA9\n");
  EXPECT_EQ(session.err.str(), "");
  ASSERT_EQ(service.generate_requests().size(), 1u);
  const v1::GenerateRequest request = service.generate_requests()[0];
  EXPECT_EQ(request.text(), "hi");
  EXPECT_TRUE(request.sampling().has_top_k());
  EXPECT_FALSE(request.sampling().has_temperature());
  EXPECT_FALSE(request.options().has_cache_salt());
}

TEST(Generate, JsonIsOneObjectWithAllThatScriptsNeed) {
  FakeInferenceService service(HelloScript());
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt-ids", "7,8", "--json"}, service.address()), kExitOk);
  const auto json = nlohmann::json::parse(session.out_buffer.str());
  EXPECT_EQ(json["text"], "Hello\xC3\xA9");
  EXPECT_EQ(json["token_ids"], (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["seed"], 99);
  EXPECT_EQ(json["request_id"], "r-1");
  EXPECT_EQ(json["receipt"]["prompt_tokens"], 4);
  EXPECT_EQ(json["receipt"]["block_steps"], 12);
  EXPECT_EQ(service.generate_requests()[0].token_ids().ids_size(), 2);
}

TEST(Generate, AnEchoStandsBeforeSeveralChoicesToo) {
  FakeInferenceService::Script script;
  script.replies.emplace_back().mutable_prompt()->set_text("Once");
  script.replies.push_back(Piece(" upon", {1}));
  script.replies.push_back(End(v1::FINISH_REASON_STOP));
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt", "Once", "--echo", "--n", "2"}, service.address()),
            kExitOk);
  EXPECT_EQ(session.out_buffer.str(), "--- prompt\nOnce\n--- choice 0 (stop)\n upon\n");
}

TEST(Generate, SeveralChoicesAreShownOneAfterTheOtherAndStandInTheJsonByIndex) {
  FakeInferenceService::Script script;
  for (const auto& [index, text] : {std::pair(0, "one"), std::pair(1, "two"), std::pair(0, " a")}) {
    v1::ChoiceDelta& delta = *script.replies.emplace_back().add_deltas();
    delta.set_index(static_cast<std::uint32_t>(index));
    delta.set_text(text);
    delta.add_token_ids(static_cast<std::uint32_t>(index) + 5);
  }
  v1::Finish& finish = *script.replies.emplace_back().mutable_finish();
  for (std::uint32_t i : {0u, 1u}) {
    v1::ChoiceFinish& choice = *finish.add_choices();
    choice.set_index(i);
    choice.set_reason(i == 0 ? v1::FINISH_REASON_LENGTH : v1::FINISH_REASON_STOP);
  }
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt", "x", "--n", "2"}, service.address()), kExitOk);
  EXPECT_EQ(service.generate_requests()[0].sampling().n(), 2);
  EXPECT_EQ(session.out_buffer.str(), "--- choice 0 (length)\none a\n--- choice 1 (stop)\ntwo\n");
  session.out_buffer.str("");
  EXPECT_EQ(session.Run({"generate", "--prompt", "x", "--n", "2", "--json"}, service.address()),
            kExitOk);
  const auto json = nlohmann::json::parse(session.out_buffer.str());
  ASSERT_EQ(json["choices"].size(), 2u);
  EXPECT_EQ(json["choices"][0]["text"], "one a");
  EXPECT_EQ(json["choices"][1]["index"], 1);
  EXPECT_EQ(json["choices"][1]["text"], "two");
  EXPECT_EQ(json["choices"][1]["finish_reason"], "stop");
  EXPECT_EQ(json["choices"][1]["token_ids"], (std::vector<int>{6}));
}

TEST(Generate, EveryOutputFlagIsSentAndWhatItBringsIsInTheJson) {
  v1::GenerateResponse prompt;
  prompt.mutable_prompt()->set_text("ab");
  prompt.mutable_prompt()->add_token_ids(7);
  prompt.mutable_prompt()->add_logprobs()->set_token_id(8);
  v1::GenerateResponse piece = Piece("x", {1});
  v1::TokenLogprobs& score = *piece.mutable_deltas(0)->add_logprobs();
  score.set_token_id(1);
  score.set_logprob(-0.5f);
  score.set_rank(2);
  score.add_top()->set_logprob(-std::numeric_limits<float>::infinity());
  FakeInferenceService::Script script;
  script.replies = {prompt, piece, End(v1::FINISH_REASON_STOP)};
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(
      session.Run({"generate", "--prompt", "ab", "--json", "--echo", "--logprobs", "0",
                   "--prompt-logprobs", "3", "--logprob-token-ids", "4,5", "--show-special-tokens",
                   "--bad-word", "a b", "--bad-word", "c", "--allowed-token-ids", "1,2"},
                  service.address()),
      kExitOk);
  const auto json = nlohmann::json::parse(session.out_buffer.str());
  EXPECT_EQ(json["prompt"]["text"], "ab");
  EXPECT_EQ(json["prompt"]["logprobs"][0]["token_id"], 8);
  EXPECT_EQ(json["logprobs"][0]["logprob"], -0.5);
  EXPECT_EQ(json["logprobs"][0]["rank"], 2);
  EXPECT_TRUE(json["logprobs"][0]["top"][0]["logprob"].is_null());  // C10
  const v1::GenerateRequest request = service.generate_requests()[0];
  EXPECT_TRUE(request.output().has_logprobs());
  EXPECT_EQ(request.output().prompt_logprobs(), 3);
  EXPECT_EQ(request.output().logprob_token_ids(1), 5u);
  EXPECT_TRUE(request.output().echo());
  EXPECT_FALSE(request.output().skip_special_tokens());
  EXPECT_EQ(request.sampling().bad_words(0), "a b");
  EXPECT_EQ(request.sampling().allowed_token_ids().ids(1), 2u);
}

TEST(Generate, AnEchoIsPrintedBeforeTheReply) {
  v1::GenerateResponse prompt;
  prompt.mutable_prompt()->set_text("Once ");
  FakeInferenceService::Script script;
  script.replies = {prompt, Piece("upon", {1}), End(v1::FINISH_REASON_LENGTH)};
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt", "Once ", "--echo"}, service.address()), kExitOk);
  EXPECT_EQ(session.out_buffer.str(), "Once upon\n");
  EXPECT_TRUE(service.generate_requests()[0].output().has_echo());
}

TEST(Generate, ReadsThePromptFromAFileAndFromStdin) {
  FakeInferenceService service(HelloScript());
  const std::string path = testing::TempDir() + "/prompt.txt";
  std::ofstream(path, std::ios::binary) << "two\nlines\n";
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt-file", path}, service.address()), kExitOk);
  session.in.str("from stdin");
  EXPECT_EQ(session.Run({"generate", "--prompt-file", "-"}, service.address()), kExitOk);
  std::remove(path.c_str());
  EXPECT_EQ(session.Run({"generate", "--prompt-file", path}, service.address()), kExitFailed);
  EXPECT_NE(session.err.str().find(path), std::string::npos);
  const std::string folder = testing::TempDir();
  EXPECT_EQ(session.Run({"generate", "--prompt-file", folder}, service.address()), kExitFailed);
  const auto requests = service.generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].text(), "two\nlines\n");
  EXPECT_EQ(requests[1].text(), "from stdin");
}

TEST(Generate, AFileThatIsNotUtf8IsRefusedBeforeItIsSentWithThePlace) {
  FakeInferenceService service(HelloScript());
  const std::string path = testing::TempDir() + "/commands_test_latin1.txt";
  std::ofstream(path, std::ios::binary) << "caf\xE9";
  for (const char* const command : {"generate", "tokenize"}) {
    Session session;
    EXPECT_EQ(session.Run({command, "--prompt-file", path}, service.address()), kExitFailed);
    EXPECT_NE(session.err.str().find(path + " is not UTF-8: byte 3 is 0xe9"), std::string::npos)
        << session.err.str();
  }
  EXPECT_TRUE(service.generate_requests().empty());
}

TEST(Generate, AnInterruptIsSaidInAWord) {
  FakeInferenceService::Script script;
  script.replies = {Piece("Once upon", {1})};
  script.waits_for_cancel = true;
  FakeInferenceService service(script);
  Session session;
  std::jthread interrupter([&] {
    session.out_buffer.AwaitText("Once upon", 1);
    EXPECT_TRUE(session.interrupts.Trigger());
  });
  EXPECT_EQ(session.Run({"generate", "--prompt", "x"}, service.address()), kExitFailed);
  EXPECT_EQ(session.err.str(), "[cancelled]\n");
}

TEST(Generate, AFailureIsDecodedFromTheTrailer) {
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("prompt");
  bad.mutable_field_violations(0)->set_description("is empty");
  google::rpc::Status details;
  details.add_details()->PackFrom(bad);
  FakeInferenceService::Script script;
  script.status = {grpc::StatusCode::INVALID_ARGUMENT, "no prompt", details.SerializeAsString()};
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt", ""}, service.address()), kExitFailed);
  EXPECT_NE(session.err.str().find("prompt: is empty"), std::string::npos) << session.err.str();
  EXPECT_EQ(session.out_buffer.str(), "");
  EXPECT_EQ(session.Run({"generate", "--prompt", "", "--n", "2"}, service.address()), kExitFailed);
  EXPECT_EQ(session.out_buffer.str(), "");
  EXPECT_EQ(session.Run({"generate", "--prompt", "", "--json"}, service.address()), kExitFailed);
  const auto json = nlohmann::json::parse(session.out_buffer.str());
  EXPECT_EQ(json["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(json["error"]["details"][0]["field_violations"][0]["field"], "prompt");
}

TEST(Generate, AStreamThatEndsWithoutAFinishIsAnError) {
  FakeInferenceService::Script script;
  script.replies = {Piece("half", {1})};
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt", "x"}, service.address()), kExitFailed);
  EXPECT_NE(session.err.str().find("without a finish"), std::string::npos);
}

TEST(Generate, NoServerHasItsOwnExitCode) {
  std::string address;
  {
    FakeInferenceService service({});
    address = service.address();
  }
  Session session;
  EXPECT_EQ(session.Run({"generate", "--prompt", "x"}, address), kExitUnreachable);
  EXPECT_NE(session.err.str().find("--server"), std::string::npos) << session.err.str();
}

TEST(Generate, TheDeadlineEndsACallThatNeverEnds) {
  FakeInferenceService::Script script;
  script.waits_for_cancel = true;
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(
      session.Run({"generate", "--prompt", "x", "--deadline", "0.05", "--json"}, service.address()),
      kExitFailed);
  EXPECT_EQ(nlohmann::json::parse(session.out_buffer.str())["error"]["code"], "DEADLINE_EXCEEDED");
}

TEST(Chat, OneMessageGivesOneAnswer) {
  FakeInferenceService service(HelloScript());
  Session session;
  EXPECT_EQ(session.Run({"chat", "--system", "Be brief.", "--message", "hi"}, service.address()),
            kExitOk);
  EXPECT_EQ(session.out_buffer.str(), "Hello\xC3\xA9\n");
  const v1::ChatRequest request = service.chat_requests()[0];
  ASSERT_EQ(request.messages_size(), 2);
  EXPECT_EQ(request.messages(0).role(), "system");
  EXPECT_EQ(request.messages(1).content(), "hi");
}

TEST(Chat, ToolsAndVariablesGoWithEveryTurnAsTheyAreWritten) {
  FakeInferenceService service(HelloScript());
  const std::string path = testing::TempDir() + "/commands_test_tools.json";
  std::ofstream(path) << R"([{"type": "function", "function": {"name": "f", "b": 1.0}}, {"a": 2}])";
  Session session;
  session.in.str("one\ntwo\n");
  EXPECT_EQ(session.Run({"chat", "--tools", path, "--template-variables", R"({"x": 1})"},
                        service.address()),
            kExitOk);
  const auto requests = service.chat_requests();
  ASSERT_EQ(requests.size(), 2u);
  for (const v1::ChatRequest& request : requests) {
    ASSERT_EQ(request.tools_json_size(), 2);
    EXPECT_EQ(request.tools_json(0), R"({"type":"function","function":{"name":"f","b":1.0}})");
    EXPECT_EQ(request.tools_json(1), R"({"a":2})");
    EXPECT_EQ(request.template_variables_json(), R"({"x": 1})");
  }
}

TEST(Chat, AToolsFileThatHoldsNoListIsAMistakeBeforeAnythingIsAsked) {
  FakeInferenceService service(HelloScript());
  const std::string path = testing::TempDir() + "/commands_test_no_tools.json";
  for (const char* const content : {"{}", "[1"}) {
    std::ofstream(path) << content;
    Session session;
    EXPECT_EQ(session.Run({"chat", "--tools", path, "--message", "x"}, service.address()),
              kExitFailed);
    EXPECT_NE(session.err.str().find("expected a JSON list of tools"), std::string::npos);
  }
  EXPECT_TRUE(service.chat_requests().empty());
}

TEST(Chat, EveryTurnSendsTheHistoryAndClearForgetsIt) {
  FakeInferenceService service(HelloScript());
  Session session;
  session.in.str("one\n\ntwo\n/clear\nthree\n");
  EXPECT_EQ(session.Run({"chat"}, service.address()), kExitOk);
  const auto requests = service.chat_requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].messages_size(), 1);
  ASSERT_EQ(requests[1].messages_size(), 3);
  EXPECT_EQ(requests[1].messages(1).role(), "assistant");
  EXPECT_EQ(requests[1].messages(1).content(), "Hello\xC3\xA9");
  EXPECT_EQ(requests[1].messages(2).content(), "two");
  EXPECT_EQ(requests[2].messages_size(), 1);
}

TEST(Chat, AMistypedCommandIsNotSentAndATextThatBeginsWithASlashCanBe) {
  FakeInferenceService service(HelloScript());
  Session session;
  session.in.str("/claer all\n//clear is a command\nb\xff\n");
  EXPECT_EQ(session.Run({"chat"}, service.address()), kExitOk);
  const auto requests = service.chat_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].messages(0).content(), "/clear is a command");
  EXPECT_NE(session.err.str().find("there is no /claer; there is /clear."), std::string::npos);
  EXPECT_NE(session.err.str().find("the line is not UTF-8: byte 1"), std::string::npos);
}

TEST(Chat, OnATerminalItPromptsAndShowsTheReceipt) {
  FakeInferenceService service(HelloScript());
  Session session;
  session.on_terminal = true;
  session.in.str("hi\n");
  EXPECT_EQ(session.Run({"chat"}, service.address()), kExitOk);
  EXPECT_NE(session.out_buffer.str().find("> Hello\xC3\xA9\n> \n"), std::string::npos)
      << session.out_buffer.str();
  EXPECT_NE(session.err.str().find("4 prompt tokens"), std::string::npos) << session.err.str();
}

TEST(Chat, AnInterruptCancelsTheReplyOnlyAndKeepsWhatWasSeen) {
  FakeInferenceService::Script script;
  script.replies = {Piece("Once upon", {1})};
  script.waits_for_cancel = true;
  FakeInferenceService service(script);
  Session session;
  session.in.str("tell me\nand then?\n");
  std::jthread interrupter([&] {
    for (const int reply : {1, 2}) {
      session.out_buffer.AwaitText("Once upon", reply);
      EXPECT_TRUE(session.interrupts.Trigger());
    }
  });
  EXPECT_EQ(session.Run({"chat"}, service.address()), kExitOk);
  interrupter.join();
  const auto requests = service.chat_requests();
  ASSERT_EQ(requests.size(), 2u);
  ASSERT_EQ(requests[1].messages_size(), 3);
  EXPECT_EQ(requests[1].messages(1).content(), "Once upon");
  EXPECT_EQ(session.err.str(), "[cancelled]\n[cancelled]\n");
}

TEST(Chat, AFailedTurnLeavesNoTraceInTheHistory) {
  FakeInferenceService::Script script;
  script.status = {grpc::StatusCode::INVALID_ARGUMENT, "no"};
  FakeInferenceService service(script);
  Session session;
  session.in.str("one\ntwo\n");
  EXPECT_EQ(session.Run({"chat"}, service.address()), kExitOk);
  ASSERT_EQ(service.chat_requests().size(), 2u);
  EXPECT_EQ(service.chat_requests()[1].messages_size(), 1);
}

TEST(Interrupt, WithNothingToInterruptIsSaid) {
  Interrupts interrupts;
  EXPECT_FALSE(interrupts.Trigger());
  int inner = 0, outer = 0;
  const Interrupts::Scope first(interrupts, [&] { ++outer; });
  {
    const Interrupts::Scope second(interrupts, [&] { ++inner; });
    EXPECT_TRUE(interrupts.Trigger());
  }
  EXPECT_TRUE(interrupts.Trigger());
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 1);
}

TEST(Tokenize, PrintsIdsAndBytesEvenWhereTheyAreNotText) {
  FakeInferenceService::Script script;
  for (const std::uint32_t id : {5u, 6u}) script.tokens.add_token_ids(id);
  script.tokens.add_token_bytes("a\"b");
  script.tokens.add_token_bytes("\xf0\x9f");
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"tokenize", "--prompt", "x"}, service.address()), kExitOk);
  EXPECT_EQ(session.out_buffer.str(), "5\t\"a\\\"b\"\n6\t\"\\xf0\\x9f\"\n");
  session.out_buffer.str("");
  EXPECT_EQ(session.Run({"tokenize", "--prompt", "x", "--json"}, service.address()), kExitOk);
  const auto json = nlohmann::json::parse(session.out_buffer.str());
  EXPECT_EQ(json["token_ids"], (std::vector<int>{5, 6}));
  EXPECT_EQ(json["token_bytes_hex"][1], "f09f");
}

TEST(Health, ExitsZeroOnlyWhenServing) {
  const std::pair<Health::ServingStatus, int> cases[] = {{Health::SERVING, kExitOk},
                                                         {Health::NOT_SERVING, kExitFailed},
                                                         {Health::SERVICE_UNKNOWN, kExitFailed}};
  for (const auto& [status, code] : cases) {
    FakeInferenceService::Script script;
    script.health = {status};
    FakeInferenceService service(script);
    Session session;
    EXPECT_EQ(session.Run({"health"}, service.address()), code);
    EXPECT_EQ(session.out_buffer.str(), Health::ServingStatus_Name(status) + "\n");
  }
}

TEST(Health, AServiceThatIsNotThereIsAMatterOfItsName) {
  FakeInferenceService::Script script;
  script.health = {Health::SERVICE_UNKNOWN};
  script.health_status = {grpc::StatusCode::NOT_FOUND, "unknown service"};
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"health", "--service", "foo"}, service.address()), kExitFailed);
  EXPECT_NE(session.err.str().find("To do: the server has no service of the name 'foo'"),
            std::string::npos)
      << session.err.str();
}

TEST(Health, WaitsUntilTheServerServes) {
  FakeInferenceService::Script script;
  script.health = {Health::NOT_SERVING, Health::NOT_SERVING, Health::SERVING};
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"health", "--wait", "60", "--json"}, service.address()), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(session.out_buffer.str())["status"], "SERVING");
}

TEST(Health, NoServerIsUnreachableAndAnInterruptEndsTheWait) {
  std::string address;
  {
    FakeInferenceService service({});
    address = service.address();
  }
  Session session;
  EXPECT_EQ(session.Run({"health"}, address), kExitUnreachable);
  std::jthread interrupter([&] {
    while (!session.interrupts.Trigger()) std::this_thread::yield();
  });
  EXPECT_EQ(session.Run({"health", "--wait", "3600"}, address), kExitUnreachable);
}

TEST(Model, IsShownAsAPersonWouldReadIt) {
  FakeInferenceService::Script script;
  script.model.add_names("smollm2");
  script.model.set_architecture("llama");
  script.model.set_max_model_len(2048);
  script.model.set_num_kv_blocks(100);
  script.model.set_block_size(16);
  script.model.set_kv_bytes_per_token(1024);
  FakeInferenceService service(script);
  Session session;
  EXPECT_EQ(session.Run({"model"}, service.address()), kExitOk);
  EXPECT_NE(session.out_buffer.str().find("2048 tokens, prompt and reply together"),
            std::string::npos);
  EXPECT_NE(session.out_buffer.str().find("100 blocks of 16 tokens, 1.6 MiB"), std::string::npos)
      << session.out_buffer.str();
  session.out_buffer.str("");
  EXPECT_EQ(session.Run({"model", "--json"}, service.address()), kExitOk);
  const auto json = nlohmann::json::parse(session.out_buffer.str());
  EXPECT_EQ(json["names"][0], "smollm2");
  EXPECT_FALSE(json.contains("bos_token_id"));
}

}  // namespace
}  // namespace pagoda::client
