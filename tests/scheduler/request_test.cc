#include "scheduler/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/field_error.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler {
namespace {

using testing::Ascending;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

ModelLimits Limits() {
  ModelLimits limits;
  limits.vocabulary_size = 512;
  limits.max_model_len = 64;
  limits.block_size = 4;
  limits.capacity_blocks = 100;
  return limits;
}

// The field that is refused, or "ok".
std::string Verdict(const std::function<void(RequestFields&)>& fill) {
  RequestFields fields;
  fill(fields);
  const auto request = NewRequest::Create(fields, Limits(), 7);
  return request.ok() ? "ok" : base::FieldOf(request.status());
}

NewRequest Created(const RequestFields& fields = {}) {
  return *NewRequest::Create(fields, Limits(), 7);
}

TEST(NewRequest, C1RefusesNegativeAndNonFiniteTemperaturesAndHonoursAnyPositiveOne) {
  for (const float bad : {-1e-6f, -1.0f, kInfinity, -kInfinity, kNan}) {
    EXPECT_EQ(Verdict([&](RequestFields& f) { f.temperature = bad; }), "temperature") << bad;
  }
  for (const float good : {1e-3f, 1e-5f, 1e-6f, 1e-30f, 0.0f, 100.0f}) {
    RequestFields fields;
    fields.temperature = good;
    EXPECT_EQ(Created(fields).sampling().temperature, good);
  }
}

TEST(NewRequest, C5ZeroDiffersFromAbsent) {
  EXPECT_EQ(Verdict([](RequestFields& f) { f.max_tokens = 0; }), "max_tokens");
  RequestFields zero;
  zero.seed = 0;
  zero.temperature = 0.0f;
  zero.top_k = 0;
  zero.presence_penalty = 0.0f;
  const NewRequest request = Created(zero);
  EXPECT_EQ(request.sampling().seed, 0u);
  EXPECT_TRUE(request.sampling().is_greedy());
  EXPECT_EQ(request.sampling().top_k, 0);
  EXPECT_EQ(Created().sampling().seed, 7u);
  EXPECT_EQ(Created().sampling().temperature, 1.0f);
}

TEST(NewRequest, C6RefusesWhatIsOutOfRangeByName) {
  const auto top_k = [](int k) { return Verdict([k](RequestFields& f) { f.top_k = k; }); };
  EXPECT_EQ(top_k(9'999'999), "ok");
  EXPECT_EQ(top_k(-1), "ok");
  EXPECT_EQ(top_k(-2), "top_k");
  const auto top_p = [](float p) { return Verdict([p](RequestFields& f) { f.top_p = p; }); };
  EXPECT_EQ(top_p(0.0f), "top_p");
  EXPECT_EQ(top_p(1e-9f), "ok");
  EXPECT_EQ(top_p(1.0001f), "top_p");
  EXPECT_EQ(top_p(kNan), "top_p");
  const auto bias = [](base::TokenId token, float value) {
    return Verdict([=](RequestFields& f) { f.logit_bias = {{token, value}}; });
  };
  EXPECT_EQ(bias(511, -100.0f), "ok");
  EXPECT_EQ(bias(512, 1.0f), "logit_bias");
  EXPECT_EQ(bias(static_cast<base::TokenId>(-1), 1.0f), "logit_bias");
  EXPECT_EQ(bias(1, 100.5f), "logit_bias");
  EXPECT_EQ(bias(1, kNan), "logit_bias");
}

TEST(NewRequest, RefusesEveryOtherParameterOutsideItsRange) {
  EXPECT_EQ(Verdict([](RequestFields& f) { f.min_p = 1.01f; }), "min_p");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.min_p = -0.1f; }), "min_p");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.presence_penalty = 2.1f; }), "presence_penalty");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.presence_penalty = kNan; }), "presence_penalty");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.frequency_penalty = -2.1f; }), "frequency_penalty");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.repetition_penalty = 0.0f; }), "repetition_penalty");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.repetition_penalty = kInfinity; }),
            "repetition_penalty");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.min_tokens = -1; }), "min_tokens");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.max_tokens = 3, f.min_tokens = 4; }), "min_tokens");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.max_tokens = 3, f.min_tokens = 3; }), "ok");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.priority = 101; }), "priority");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.priority = -101; }), "priority");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.stop_token_ids = {512}; }), "stop_token_ids");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.stop_token_ids.assign(65, 1); }), "stop_token_ids");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.logit_bias = {{3, 1.0f}, {3, 2.0f}}; }), "logit_bias");
  EXPECT_EQ(Verdict([](RequestFields& f) { f.logit_bias.resize(1025); }), "logit_bias");
}

TEST(NewRequest, AnErrorSaysWhatWasAskedAndWhatIsAllowed) {
  RequestFields fields;
  fields.top_p = 1.5f;
  const auto status = NewRequest::Create(fields, Limits(), 7).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("1.5 asked, allowed is above 0 and at most 1"));
}

absl::Status Attached(std::size_t prompt, std::optional<std::int32_t> max_tokens) {
  RequestFields fields;
  fields.max_tokens = max_tokens;
  return Created(fields).AttachPrompt(Ascending(1, prompt), Limits());
}

TEST(NewRequest, E7TakesEdgeLengthsAndRefusesEmptyAndOverlongPrompts) {
  const int limit = Limits().max_model_len;
  EXPECT_EQ(base::ReasonOf(Attached(0, 1)), kReasonEmptyPrompt);
  EXPECT_EQ(base::FieldOf(Attached(0, 1)), "prompt");
  EXPECT_TRUE(Attached(1, 1).ok());
  EXPECT_TRUE(Attached(1, limit - 1).ok());
  EXPECT_EQ(base::ReasonOf(Attached(1, limit)), kReasonContextTooLong);
  EXPECT_TRUE(Attached(63, 1).ok());
  EXPECT_TRUE(Attached(63, std::nullopt).ok());
  for (const std::size_t length : {64u, 65u, 100'000u}) {
    EXPECT_EQ(base::ReasonOf(Attached(length, 1)), kReasonContextTooLong) << length;
    EXPECT_EQ(base::FieldOf(Attached(length, std::nullopt)), "prompt") << length;
  }
}

TEST(NewRequest, E1RefusesWhatCanNeverFitThePoolWithBothNumbers) {
  ModelLimits limits = Limits();
  limits.max_model_len = 2'000;
  limits.block_size = 16;
  limits.capacity_blocks = 39;
  RequestFields fields;
  fields.max_tokens = 8;
  NewRequest request = *NewRequest::Create(fields, limits, 7);
  const std::vector<base::TokenId> prompt(900, 3);
  const absl::Status status = request.AttachPrompt(prompt, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::ReasonOf(status), kReasonKvPoolTooSmall);
  EXPECT_THAT(std::string(status.message()), HasSubstr("57 KV blocks"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("can hold 39"));
  // The last token's KV is never written, so an exact fit is one token longer than the pool.
  EXPECT_TRUE(request.AttachPrompt(std::span(prompt).first(39 * 16 + 1 - 8), limits).ok());
  EXPECT_EQ(request.WorstCaseBlocks(16), 39);
}

TEST(NewRequest, TheWorstCaseOfSeveralChoicesHoldsThePromptsFullBlocksOnce) {
  RequestFields fields;
  fields.n = 3;
  fields.max_tokens = 9;
  ModelLimits limits = Limits();
  NewRequest request = Created(fields);
  ASSERT_TRUE(request.AttachPrompt(Ascending(1, 10), limits).ok());
  EXPECT_EQ(request.num_choices(), 3u);
  EXPECT_EQ(request.WorstCaseBlocks(4), 2 + 3 * 3);  // floor(10 / 4), ceil(18 / 4) - 2 for each
  limits.capacity_blocks = 11;
  EXPECT_TRUE(Created(fields).AttachPrompt(Ascending(1, 10), limits).ok());
  limits.capacity_blocks = 10;
  const absl::Status status = Created(fields).AttachPrompt(Ascending(1, 10), limits);
  EXPECT_EQ(base::ReasonOf(status), kReasonKvPoolTooSmall);
  EXPECT_THAT(std::string(status.message()), HasSubstr("11 KV blocks"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("3 choices"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("can hold 10"));
  fields.max_tokens.reset();
  NewRequest cut = Created(fields);
  ASSERT_TRUE(cut.AttachPrompt(Ascending(1, 10), limits).ok());
  EXPECT_EQ(cut.max_tokens(), 7);  // two blocks more for each: tokens 8 ... 15, and one unwritten
  EXPECT_EQ(cut.WorstCaseBlocks(4), 8);
}

TEST(NewRequest, NIsBoundedByTheNamedLimitAndByTheRows) {
  ModelLimits limits = Limits();
  const auto refusal = [&](std::int32_t n) {
    RequestFields fields;
    fields.n = n;
    return NewRequest::Create(fields, limits, 7).status();
  };
  limits.max_num_seqs = 8;
  EXPECT_TRUE(refusal(1).ok());
  EXPECT_TRUE(refusal(8).ok());
  for (const std::int32_t n : {-1, 0, 9}) {
    EXPECT_EQ(base::FieldOf(refusal(n)), "n") << n;
    EXPECT_THAT(std::string(refusal(n).message()), HasSubstr(std::to_string(n) + " asked"));
    EXPECT_THAT(std::string(refusal(n).message()), HasSubstr("the caller can run 8 at once"));
  }
  limits.max_num_seqs = 1'000;
  EXPECT_TRUE(refusal(ModelLimits::kMaxChoices).ok());
  EXPECT_EQ(base::FieldOf(refusal(ModelLimits::kMaxChoices + 1)), "n");
}

TEST(NewRequest, AbsentMaxTokensIsTheRestOfTheContextCutToThePool) {
  NewRequest request = Created();
  ASSERT_TRUE(request.AttachPrompt(Ascending(1, 10), Limits()).ok());
  EXPECT_EQ(request.max_tokens(), 54);
  ModelLimits small = Limits();
  small.capacity_blocks = 4;
  NewRequest cut = Created();
  ASSERT_TRUE(cut.AttachPrompt(Ascending(1, 10), small).ok());
  EXPECT_EQ(cut.max_tokens(), 7);
  EXPECT_EQ(cut.WorstCaseBlocks(4), 4);
}

TEST(NewRequest, RefusesATokenOutsideTheVocabularyAndKeepsItsState) {
  NewRequest request = Created();
  EXPECT_EQ(base::FieldOf(request.AttachPrompt(std::vector<base::TokenId>{1, 512}, Limits())),
            "prompt");
  EXPECT_EQ(request.prompt_length(), 0);
}

TEST(NewRequest, BuffersHaveRoomForTheWholeReply) {
  RequestFields fields;
  fields.max_tokens = 30;
  NewRequest request = Created(fields);
  ASSERT_TRUE(request.AttachPrompt(Ascending(1, 10), Limits()).ok());
  KeyDomain domain;
  domain.block_size = 4;
  const BlockKeyer keyer(testing::KeyFor(std::nullopt), domain);
  request.AttachKeys(testing::KeyFor(std::nullopt), keyer);
  EXPECT_EQ(request.keys().size(), 2u);
  const auto* tokens = request.tokens().data();
  const auto* keys = request.keys().data();
  for (base::TokenId token = 0; token < 30; ++token) request.tokens().push_back(token);
  request.ExtendKeys(keyer);
  EXPECT_EQ(request.keys().size(), 10u);
  EXPECT_EQ(request.tokens().data(), tokens);
  EXPECT_EQ(request.keys().data(), keys);
}

}  // namespace
}  // namespace pagoda::scheduler
