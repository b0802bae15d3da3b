#include "server/grpc/inference_service.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <gtest/gtest.h>

#include "server/core/refusal.h"
#include "server/grpc/reply_conversion.h"
#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

using ::grpc::StatusCode;

World::Options WithChat() {
  World::Options options;
  options.chat = true;
  return options;
}

TEST(InferenceService, ChatRendersTheMessagesAndStreams) {
  DoorWorld door(WithChat());
  v1::ChatRequest request;
  auto& message = *request.add_messages();
  message.set_role("user");
  message.set_content("abcd");
  request.mutable_stop()->set_max_tokens(2);
  ::grpc::ClientContext context;
  const WholeReply reply = ReadAll(*door.stub->Chat(&context, request));
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.text, "ab");
  EXPECT_EQ(reply.finish.receipt().prompt_tokens(), 4);
}

TEST(InferenceService, BadFieldsUnknownModelsAndWhatIsNotBuiltHaveTheirCodes) {
  DoorWorld door;
  v1::GenerateRequest request = TextRequest("a", 3);
  request.mutable_sampling()->set_temperature(-1);
  WholeReply reply = Generate(*door.stub, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(reply.status), "sampling.temperature");
  request = TextRequest("a", 3);
  request.set_model("nobody");
  EXPECT_EQ(Generate(*door.stub, request).status.error_code(), StatusCode::NOT_FOUND);
  request = TextRequest("a", 3);
  request.mutable_sampling()->set_n(65);
  reply = Generate(*door.stub, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(reply.status), "sampling.n");
  request = TextRequest("a", 3);
  request.mutable_options()->set_adapter("x");
  reply = Generate(*door.stub, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ReasonIn(reply.status), "FEATURE_NOT_BUILT");
  request = TextRequest("a", 3);
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(900, 1);
  reply = Generate(*door.stub, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_NE(reply.status.error_message().find("900"), std::string::npos);
  reply = Generate(*door.stub, TextRequest("?", 3));  // found by a text worker
  EXPECT_EQ(FieldIn(reply.status), "text");
  reply = Generate(*door.stub, TextRequest("a", 64));
  EXPECT_EQ(FieldIn(reply.status), "stop.max_tokens");
}

TEST(InferenceService, EveryChoiceComesUnderItsIndexAndEndsInTheOneFinish) {
  DoorWorld door;
  v1::GenerateRequest request = TextRequest("a", 3);
  request.mutable_sampling()->set_n(3);
  const WholeReply reply = Generate(*door.stub, request);
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.num_finishes, 1);
  ASSERT_EQ(reply.text_of.size(), 3u);
  EXPECT_NE(reply.text_of.at(0), reply.text_of.at(1));
  EXPECT_NE(reply.text_of.at(1), reply.text_of.at(2));
  ASSERT_EQ(reply.finish.choices_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(reply.finish.choices(i).index(), static_cast<std::uint32_t>(i));
    EXPECT_EQ(reply.finish.choices(i).reason(), v1::FINISH_REASON_LENGTH);
  }
}

TEST(InferenceService, ARefusalThatHelpsToRetryCarriesThePushback) {
  World::Options options;
  options.serving = false;
  DoorWorld door(options);
  ::grpc::ClientContext context;
  const WholeReply reply = ReadAll(*door.stub->Generate(&context, TextRequest("a", 1)));
  EXPECT_EQ(reply.status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(reply.status), reason::kLoading);
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, trailers.end());
  EXPECT_EQ(std::string(pushback->second.data(), pushback->second.size()), "1000");
}

// Row F9: the port is open while the model loads, and every call says so.
TEST(InferenceService, WhileTheModelIsLoadingEveryCallSaysSo) {
  World::Options options;
  options.serving = false;
  DoorWorld door(options);
  ::grpc::ClientContext generate, chat, tokenize, detokenize, model, models;
  v1::TokenizeResponse ids;
  v1::DetokenizeResponse text;
  v1::Model one;
  v1::ListModelsResponse all;
  for (const ::grpc::Status& status :
       {ReadAll(*door.stub->Generate(&generate, TextRequest("a", 1))).status,
        ReadAll(*door.stub->Chat(&chat, {})).status, door.stub->Tokenize(&tokenize, {}, &ids),
        door.stub->Detokenize(&detokenize, {}, &text), door.stub->GetModel(&model, {}, &one),
        door.stub->ListModels(&models, {}, &all)}) {
    EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_EQ(ReasonIn(status), reason::kLoading);
  }
}

TEST(InferenceService, UnaryCallsAnswer) {
  DoorWorld door(WithChat());
  v1::TokenizeRequest tokenize;
  tokenize.set_text("cab");
  v1::TokenizeResponse ids;
  ::grpc::ClientContext first, second, third, fourth, fifth;
  ASSERT_TRUE(door.stub->Tokenize(&first, tokenize, &ids).ok());
  EXPECT_EQ(ids.token_ids_size(), 3);
  EXPECT_EQ(ids.token_bytes(0), "c");
  v1::DetokenizeRequest detokenize;
  for (auto id : ids.token_ids()) detokenize.add_token_ids(id);
  v1::DetokenizeResponse text;
  ASSERT_TRUE(door.stub->Detokenize(&second, detokenize, &text).ok());
  EXPECT_EQ(text.text(), "cab");
  detokenize.add_token_ids(1000);
  EXPECT_EQ(FieldIn(door.stub->Detokenize(&third, detokenize, &text)), "token_ids");
  v1::Model model;
  ASSERT_TRUE(door.stub->GetModel(&fourth, {}, &model).ok());
  EXPECT_EQ(model.names(0), "tiny");
  v1::ListModelsResponse models;
  ASSERT_TRUE(door.stub->ListModels(&fifth, {}, &models).ok());
  EXPECT_EQ(models.models_size(), 1);
}

// The bytes of a request that a sound client library would not send.
::grpc::Status SendRaw(DoorWorld& door, const std::string& bytes) {
  ::grpc::Slice slice(bytes);
  ::grpc::ByteBuffer request(&slice, 1);
  ::grpc::ByteBuffer response;
  ::grpc::ClientContext context;
  ::grpc::GenericStub stub(door.channel);
  ::grpc::CompletionQueue queue;
  auto call =
      stub.PrepareUnaryCall(&context, "/pagoda.v1.InferenceService/Generate", request, &queue);
  call->StartCall();
  ::grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

TEST(InferenceService, TextThatIsNotUtf8OrNoMessageAtAllIsAnInvalidArgument) {
  DoorWorld door;
  const std::string bad_text = std::string("\x12\x02") + "\xFF\xFE";  // field 2, two bytes
  ::grpc::Status status = SendRaw(door, bad_text);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonIn(status), "MALFORMED_REQUEST");
  status = SendRaw(door, "\x12\x7F!");  // cut
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
}

// Row F2: a request over the limit.
TEST(InferenceService, ARequestOverTheSizeLimitIsRefusedWithTheLimit) {
  DoorWorld door;
  const WholeReply reply = Generate(*door.stub, TextRequest(std::string((64 << 20) + 1, 'a'), 1));
  EXPECT_EQ(reply.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(reply.status.error_message().find("67108864"), std::string::npos);
  EXPECT_TRUE(Generate(*door.stub, TextRequest("a", 1)).status.ok());
}

// Row F2: a reply is many times as large as the text.
TEST(InferenceService, ATextOverTheBoundOfTokenizeIsRefusedWithBothNumbers) {
  DoorWorld door;
  v1::TokenizeRequest request;
  request.set_text(std::string(4 << 20, 'a'));
  v1::TokenizeResponse ids;
  ::grpc::ClientContext first, second;
  const ::grpc::Status status = door.stub->Tokenize(&first, request, &ids);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(status), "text");
  EXPECT_NE(status.error_message().find("at most 4194304"), std::string::npos);
  request.set_text(std::string(1 << 18, 'a'));
  ids.Clear();
  EXPECT_TRUE(door.stub->Tokenize(&second, request, &ids).ok());
  EXPECT_EQ(ids.token_ids_size(), 1 << 18);
}

}  // namespace
}  // namespace pagoda::server
