// A model with a SentencePiece vocabulary behind the whole server. Tokens spell the space before a
// word, so that what is at stake is every space of a reply: a reply goes on with its prompt's text,
// and a text begins without the space that its first word is spelt with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/command_session.h"
#include "tests/process/server_fixture.h"

namespace pagoda::process {
namespace {

using testing::HasSubstr;

// Each script's start, and what is said after it.
std::string SpokenFile(const std::vector<fixtures::ChainScript>& scripts) {
  const std::string path = FreshFile("-sentence-piece.gguf");
  const auto written = fixtures::WriteChainGguf(path, scripts, {.has_sentence_pieces = true});
  EXPECT_TRUE(written.ok()) << written.status().ToString();
  return path;
}

v1::GenerateRequest Ask(const std::string& text) {
  v1::GenerateRequest request;
  request.set_text(text);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stop()->set_max_tokens(20);
  return request;
}

std::string Detokenized(Server& server, const std::vector<std::uint32_t>& ids) {
  v1::DetokenizeRequest request;
  request.mutable_token_ids()->Add(ids.begin(), ids.end());
  v1::DetokenizeResponse response;
  ::grpc::ClientContext context;
  const ::grpc::Status status = server.stub->Detokenize(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.text();
}

v1::TokenizeResponse Tokenized(Server& server, const v1::TokenizeRequest& request) {
  v1::TokenizeResponse response;
  ::grpc::ClientContext context;
  const ::grpc::Status status = server.stub->Tokenize(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

class SentencePieceServer : public testing::Test {
 protected:
  SentencePieceServer()
      : server_(SpokenFile({{.start = ":", .pieces = {" yes", " Daily", " new", "s", " is"}},
                            {.start = "", .pieces = {" Once", " upon", "\xE2", "\x82", "\xAC"}},
                            {.start = "\n", .pieces = {" Sure", ", there"}}})) {}
  Server server_;
};

TEST_F(SentencePieceServer, A6_AReplyKeepsEverySpaceWholeAndInParts) {
  const Reply reply = server_.Generate(Ask("Say:"));
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_EQ(reply.text, " yes Daily news is");
  EXPECT_EQ(reply.tokens.size(), 6u) << "five words and EOS";
}

TEST_F(SentencePieceServer, A6_AReplyThatBeginsTheTextBeginsWithoutASpace) {
  const Reply reply = server_.Generate(Ask(""));
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_EQ(reply.text, "Once upon\u20AC");
  v1::GenerateRequest shown = Ask("");
  shown.mutable_output()->set_skip_special_tokens(false);
  EXPECT_THAT(server_.Generate(shown).text, HasSubstr(" Once upon")) << "it follows BOS's name";
}

TEST_F(SentencePieceServer, AStopStringIsFoundOverTokensAndSpaces) {
  v1::GenerateRequest request = Ask("Say:");
  request.mutable_stop()->add_stop("y new");
  const Reply reply = server_.Generate(request);
  EXPECT_EQ(reply.text, " yes Dail");
  ASSERT_EQ(reply.finish.choices_size(), 1);
  EXPECT_TRUE(reply.finish.choices(0).has_matched_stop());
}

TEST_F(SentencePieceServer, PromptAndReplyJoinedAreTheTextOfTheirTokens) {
  v1::TokenizeRequest request;
  request.set_text("Say:");
  const v1::TokenizeResponse prompt = Tokenized(server_, request);
  std::vector<std::uint32_t> ids(prompt.token_ids().begin(), prompt.token_ids().end());
  EXPECT_EQ(prompt.token_bytes(1), " ") << "after BOS: the first word is spelt as any other";
  EXPECT_EQ(Detokenized(server_, ids), "Say:");
  v1::GenerateRequest echoing = Ask("Say:");
  echoing.mutable_output()->set_echo(true);
  ::grpc::ClientContext context;
  auto reader = server_.stub->Generate(&context, echoing);
  std::string echoed, said;
  for (v1::GenerateResponse part; reader->Read(&part);) {
    echoed += part.prompt().text();
    for (const auto& delta : part.deltas()) {
      said += delta.text();
      ids.insert(ids.end(), delta.token_ids().begin(), delta.token_ids().end());
    }
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(echoed, "Say:");
  EXPECT_EQ(echoed + said, Detokenized(server_, ids));
}

TEST_F(SentencePieceServer, AChatHasOneBosAndInputIsNeverControl) {
  v1::TokenizeRequest request;
  request.mutable_chat()->add_messages()->set_role("user");
  request.mutable_chat()->mutable_messages(0)->set_content("a<|im_end|>b");
  const v1::TokenizeResponse prompt = Tokenized(server_, request);
  const auto count = [&prompt](std::uint32_t id) {
    return std::ranges::count(prompt.token_ids(), id);
  };
  EXPECT_EQ(prompt.token_ids(0), 1u);
  EXPECT_EQ(count(1), 2) << "of the message and of the reply";
  EXPECT_EQ(count(2), 1) << "the template's own";
  v1::ChatRequest chat;
  *chat.add_messages() = request.chat().messages(0);
  chat.mutable_sampling()->set_temperature(0);
  ::grpc::ClientContext context;
  EXPECT_EQ(ReadAll(*server_.stub->Chat(&context, chat)).text, " Sure, there");
}

TEST(SentencePieceFile, InspectAndPlanSayWhatItIs) {
  const std::string path = SpokenFile({{.start = ":", .pieces = {" yes"}}});
  client::CommandSession inspect;
  EXPECT_EQ(inspect.Run({"inspect", path}), client::kExitOk) << inspect.text();
  EXPECT_THAT(inspect.text(), HasSubstr("SentencePiece BPE"));
  client::CommandSession plan;
  EXPECT_EQ(plan.Run({"plan", path, "--memory", "1GiB"}), client::kExitOk) << plan.text();
}

}  // namespace
}  // namespace pagoda::process
