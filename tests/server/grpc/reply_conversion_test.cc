#include "server/grpc/reply_conversion.h"

#include <gtest/gtest.h>

#include <limits>

#include "server/grpc/request_conversion.h"
#include "tests/server/world.h"

namespace pagoda::server {
namespace {

TEST(ReplyConversion, AnOkEndCarriesReasonsReceiptAndWhatWasUsed) {
  ReplyPart part;
  part.choices[0].text = "hi";
  part.choices[0].tokens = {4, 5};
  part.end = ReplyEnd{};
  part.end->choices.push_back({.reason = scheduler::FinishReason::kLength, .matched_stop = 0});
  part.end->seed = 7;
  part.end->max_tokens = 9;
  part.end->receipt.block_steps = 123;
  v1::GenerateResponse response;
  ToGenerateResponse(part, "id", "cpu-1", response);
  EXPECT_EQ(response.request_id(), "id");
  EXPECT_EQ(response.deltas(0).text(), "hi");
  EXPECT_EQ(response.deltas(0).token_ids(1), 5u);
  const v1::Finish& finish = response.finish();
  EXPECT_EQ(finish.choices(0).reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_TRUE(finish.choices(0).has_matched_stop());
  EXPECT_FALSE(finish.choices(0).has_matched_stop_token());
  EXPECT_EQ(finish.seed(), 7u);
  EXPECT_EQ(finish.max_tokens(), 9);
  EXPECT_EQ(finish.receipt().block_steps(), 123);
  EXPECT_EQ(finish.receipt().numerics_id(), "cpu-1");
}

TEST(ReplyConversion, EachChoiceHasItsIndexInDeltasAndInTheEnd) {
  ReplyPart part;
  part.choices.resize(3);
  part.choices[0].text = "a";
  part.choices[2].tokens = {9};
  part.end = ReplyEnd{};
  part.end->choices.resize(3);
  part.end->choices[1].reason = scheduler::FinishReason::kLength;
  v1::GenerateResponse response;
  ToGenerateResponse(part, "id", "cpu-1", response);
  ASSERT_EQ(response.deltas_size(), 2);  // nothing is new of choice 1
  EXPECT_EQ(response.deltas(0).index(), 0u);
  EXPECT_EQ(response.deltas(1).index(), 2u);
  EXPECT_EQ(response.deltas(1).token_ids(0), 9u);
  ASSERT_EQ(response.finish().choices_size(), 3);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(response.finish().choices(i).index(), static_cast<std::uint32_t>(i));
  EXPECT_EQ(response.finish().choices(0).reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(response.finish().choices(1).reason(), v1::FINISH_REASON_LENGTH);
}

TEST(ReplyConversion, ScoresAndThePromptHaveTheirOwnPlaces) {
  const std::vector<base::TokenLogprob> alternatives = {{1, -1.0f}, {2, -2.0f}, {3, -3.0f}};
  const std::vector<base::TokenScore> scores = {
      {.of = {7, -0.25f}, .rank = 4, .first_alternative = 1, .num_alternatives = 2},
      {.of = {8, -0.5f}, .rank = 1, .first_alternative = 0, .num_alternatives = 0}};
  ReplyPart part;
  part.prompt.text = "echo";
  part.prompt.tokens = {6, 7};
  part.prompt.scores.Append(std::span(scores).first(1), alternatives);
  v1::GenerateResponse response;
  ToGenerateResponse(part, "id", "", response);
  EXPECT_EQ(response.deltas_size(), 0);
  EXPECT_EQ(response.prompt().text(), "echo");
  EXPECT_EQ(response.prompt().token_ids(1), 7u);
  const v1::TokenLogprobs& first = response.prompt().logprobs(0);
  EXPECT_EQ(first.token_id(), 7u);
  EXPECT_EQ(first.logprob(), -0.25f);
  EXPECT_EQ(first.rank(), 4u);
  ASSERT_EQ(first.top_size(), 2);
  EXPECT_EQ(first.top(0).token_id(), 2u);
  EXPECT_EQ(first.top(1).logprob(), -3.0f);

  part.Clear();
  part.choices[0].tokens = {7, 8};
  part.choices[0].scores.Append(scores, alternatives);
  ToGenerateResponse(part, "id", "", response);
  EXPECT_FALSE(response.has_prompt());
  ASSERT_EQ(response.deltas(0).logprobs_size(), 2);
  EXPECT_EQ(response.deltas(0).logprobs(1).token_id(), 8u);
  EXPECT_EQ(response.deltas(0).logprobs(1).top_size(), 0);
}

// C10: the wire takes minus infinity, as text too.
TEST(ReplyConversion, C10AnImpossibleTokensLogprobArrives) {
  const float impossible = -std::numeric_limits<float>::infinity();
  const std::vector<base::TokenScore> scores = {{.of = {7, impossible}, .rank = 9}};
  ReplyPart part;
  part.choices[0].tokens = {7};
  part.choices[0].scores.Append(scores, {});
  v1::GenerateResponse response;
  ToGenerateResponse(part, "id", "", response);
  v1::GenerateResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(response.SerializeAsString()));
  EXPECT_EQ(parsed.deltas(0).logprobs(0).logprob(), impossible);
}

TEST(ReplyConversion, AnErrorsEndLeavesTheMessageWithoutFinish) {
  ReplyPart part;
  part.choices[0].text = "hi";
  part.end = ReplyEnd{};
  part.end->status = absl::InternalError("x");
  v1::GenerateResponse response;
  ToGenerateResponse(part, "id", "", response);
  EXPECT_FALSE(response.has_finish());
  EXPECT_EQ(response.deltas_size(), 1);
}

TEST(ReplyConversion, AnErrorThatCutAReplyShortLeavesItsReceiptAndNoChoice) {
  ReplyPart part;
  part.end = ReplyEnd{};
  part.end->status = absl::UnavailableError("x");
  part.end->has_receipt = true;
  part.end->receipt.generated_tokens = 3;
  v1::GenerateResponse response;
  ToGenerateResponse(part, "id", "", response);
  EXPECT_EQ(response.finish().receipt().generated_tokens(), 3);
  EXPECT_EQ(response.finish().choices_size(), 0);
}

TEST(ReplyConversion, TheModelShowsTheLimitsThatAreEnforced) {
  const ServedModel served = World::MakeModel({});
  const v1::Model model = ToModel(served);
  EXPECT_EQ(model.names(0), "tiny");
  EXPECT_EQ(model.max_model_len(), served.limits.max_model_len);
  EXPECT_EQ(model.vocabulary_size(), served.limits.vocabulary_size);
  EXPECT_FALSE(model.has_chat_template());
  EXPECT_FALSE(model.has_bos_token_id());
}

TEST(ReplyConversion, BytesComeBackAsTheMessageTheyWere) {
  v1::GetModelRequest request;
  request.set_model("x");
  const auto parsed = ParseMessage<v1::GetModelRequest>(SerializeMessage(request));
  EXPECT_EQ(parsed->model(), "x");
}

}  // namespace
}  // namespace pagoda::server
