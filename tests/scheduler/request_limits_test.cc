// Every parameter with a range, at each side of each limit. C5 and C6 of the public reports: absent
// differs from zero, and what is out of range is refused by its name.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/field_error.h"
#include "base/token_score.h"
#include "scheduler/request.h"

namespace pagoda::scheduler {
namespace {

using Set = std::function<void(RequestFields&)>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr base::TokenId kVocabulary = 512;

ModelLimits Limits() {
  ModelLimits limits;
  limits.vocabulary_size = kVocabulary;
  limits.max_model_len = 64;
  limits.block_size = 4;
  limits.capacity_blocks = 100;
  limits.eos_tokens = {kVocabulary - 1};
  return limits;
}

struct Row {
  std::string field;
  std::vector<Set> accepted;  // absent is always accepted
  std::vector<Set> refused;
};

template <typename T>
std::vector<Set> Values(std::optional<T> RequestFields::* field, const std::vector<T>& values) {
  std::vector<Set> sets;
  for (const T value : values) sets.push_back([=](RequestFields& f) { f.*field = value; });
  return sets;
}

template <typename T>
Row Ranged(std::string field, std::optional<T> RequestFields::* member, const std::vector<T>& good,
           const std::vector<T>& bad) {
  return {std::move(field), Values(member, good), Values(member, bad)};
}

std::vector<base::TokenId> Tokens(std::size_t count, base::TokenId token = 1) {
  return std::vector<base::TokenId>(count, token);
}
Set Bias(base::TokenId token, float bias) {
  return [=](RequestFields& f) { f.logit_bias = {{token, bias}}; };
}
Set Biases(std::size_t count) {
  return [=](RequestFields& f) {
    for (std::size_t i = 0; i < count; ++i) {
      f.logit_bias.push_back({static_cast<base::TokenId>(i), 0.0f});
    }
  };
}
Set StopIds(const std::vector<base::TokenId>& ids) {
  return [=](RequestFields& f) { f.stop_token_ids = ids; };
}
Set Allowed(const std::vector<base::TokenId>& ids) {
  return [=](RequestFields& f) { f.allowed_token_ids = ids; };
}
Set LogprobIds(const std::vector<base::TokenId>& ids, std::optional<std::int32_t> logprobs = {}) {
  return [=](RequestFields& f) { f.logprob_token_ids = ids, f.logprobs = logprobs; };
}
Set MinTokens(std::int32_t least, std::int32_t most) {
  return [=](RequestFields& f) { f.min_tokens = least, f.max_tokens = most; };
}

std::vector<Row> Table() {
  using F = RequestFields;
  const std::vector<float> not_finite = {kNan, kInfinity, -kInfinity};
  const auto with = [&](std::vector<float> bad) {
    bad.insert(bad.end(), not_finite.begin(), not_finite.end());
    return bad;
  };
  const float above_1 = std::nextafter(1.0f, 2.0f);
  const float above_2 = std::nextafter(2.0f, 3.0f);
  const float least = std::numeric_limits<float>::denorm_min();
  const std::int32_t int_max = std::numeric_limits<std::int32_t>::max();
  const std::int32_t int_min = std::numeric_limits<std::int32_t>::min();
  return {
      Ranged<float>("temperature", &F::temperature, {0.0f, -0.0f, least, 1.0f, 1e30f},
                    with({-least, -1.0f})),
      Ranged<float>("top_p", &F::top_p, {least, 1e-9f, 0.5f, 1.0f}, with({0.0f, -0.5f, above_1})),
      Ranged<float>("min_p", &F::min_p, {0.0f, 0.5f, 1.0f}, with({-least, above_1})),
      Ranged<float>("presence_penalty", &F::presence_penalty, {-2.0f, 0.0f, 2.0f},
                    with({-above_2, above_2})),
      Ranged<float>("frequency_penalty", &F::frequency_penalty, {-2.0f, 0.0f, 2.0f},
                    with({-above_2, above_2})),
      Ranged<float>("repetition_penalty", &F::repetition_penalty, {least, 1.0f, 1e30f},
                    with({0.0f, -1.0f})),
      Ranged<std::int32_t>("top_k", &F::top_k, {-1, 0, 1, kVocabulary, int_max}, {-2, int_min}),
      Ranged<std::int32_t>("max_tokens", &F::max_tokens, {1, 63}, {0, -1, int_min}),
      Ranged<std::int32_t>("priority", &F::priority, {-100, 0, 100}, {-101, 101, int_min, int_max}),
      Ranged<std::int32_t>("logprobs", &F::logprobs, {0, 1, 20}, {-1, 21, int_max, int_min}),
      Ranged<std::int32_t>("prompt_logprobs", &F::prompt_logprobs, {0, 1, 20},
                           {-1, 21, int_max, int_min}),
      {"min_tokens", {MinTokens(0, 3), MinTokens(3, 3)}, {MinTokens(-1, 3), MinTokens(4, 3)}},
      {"logit_bias",
       {Bias(kVocabulary - 1, -100.0f), Bias(0, 100.0f), Bias(0, 0.0f), Biases(kVocabulary)},
       {Bias(kVocabulary, 0.0f), Bias(0xffffffffu, 0.0f), Bias(0, -100.5f), Bias(0, 100.5f),
        Bias(0, kNan), Bias(0, kInfinity), Biases(1025)}},
      {"stop_token_ids",
       {StopIds({}), StopIds(Tokens(64)), StopIds({0, kVocabulary - 1})},
       {StopIds(Tokens(65)), StopIds({kVocabulary}), StopIds({0xffffffffu})}},
      {"allowed_token_ids",
       {Allowed({0}), Allowed({kVocabulary - 1, 3, 3}), Allowed(Tokens(5000))},
       {Allowed({}), Allowed({kVocabulary}), Allowed({1, 0xffffffffu})}},
      {"logprob_token_ids",
       {LogprobIds({}), LogprobIds(Tokens(128)), LogprobIds({0, kVocabulary - 1}, 2)},
       {LogprobIds(Tokens(129)), LogprobIds({kVocabulary}), LogprobIds({0xffffffffu})}},
      {"logprobs", {LogprobIds(Tokens(20), 20)}, {LogprobIds({1, 2}, 1), LogprobIds({1}, 0)}},
  };
}

std::string Verdict(const Set& set) {
  RequestFields fields;
  set(fields);
  const auto request = NewRequest::Create(fields, Limits(), 7);
  return request.ok() ? "ok" : base::FieldOf(request.status());
}

TEST(RequestLimits, EveryRangeEndsWhereItIsWritten) {
  for (const Row& row : Table()) {
    for (std::size_t i = 0; i < row.accepted.size(); ++i) {
      EXPECT_EQ(Verdict(row.accepted[i]), "ok") << row.field << ", accepted value " << i;
    }
    for (std::size_t i = 0; i < row.refused.size(); ++i) {
      EXPECT_EQ(Verdict(row.refused[i]), row.field) << row.field << ", refused value " << i;
    }
  }
}

TEST(RequestLimits, ARefusalSaysWhatIsAllowed) {
  for (const Row& row : Table()) {
    for (const Set& set : row.refused) {
      RequestFields fields;
      set(fields);
      const auto status = NewRequest::Create(fields, Limits(), 7).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.field;
      EXPECT_GT(status.message().size(), row.field.size() + 10) << status;
    }
  }
}

TEST(RequestLimits, C5AbsentDiffersFromZero) {
  const NewRequest absent = *NewRequest::Create({}, Limits(), 7);
  EXPECT_FALSE(absent.sampling().logprobs.has_value());
  EXPECT_FALSE(absent.sampling().prompt_logprobs.has_value());
  EXPECT_TRUE(absent.allowed_words().empty());
  EXPECT_FALSE(absent.include_stop_string());
  RequestFields fields;
  fields.logprobs = 0;
  fields.prompt_logprobs = 0;
  fields.include_stop_string = false;
  const NewRequest zero = *NewRequest::Create(fields, Limits(), 7);
  EXPECT_EQ(zero.sampling().logprobs, 0);
  EXPECT_EQ(zero.sampling().prompt_logprobs, 0);
  EXPECT_FALSE(zero.include_stop_string());
}

TEST(RequestLimits, NamedTokensAskForLogprobsByThemselves) {
  RequestFields fields;
  fields.logprob_token_ids = {5, 3};
  EXPECT_EQ(NewRequest::Create(fields, Limits(), 7)->sampling().logprobs, 2);
}

TEST(RequestLimits, AllowedTokensAreBits) {
  RequestFields fields;
  fields.allowed_token_ids = {0, 33, 33, 511};
  const NewRequest request = *NewRequest::Create(fields, Limits(), 7);
  ASSERT_EQ(request.allowed_words().size(), 16u);
  EXPECT_EQ(request.allowed_words()[0], 1u);
  EXPECT_EQ(request.allowed_words()[1], 2u);
  EXPECT_EQ(request.allowed_words()[15], 0x80000000u);
}

// What BadWords gives for such words on such fields.
std::string WithWords(const RequestFields& fields,
                      const std::vector<std::vector<base::TokenId>>& words) {
  NewRequest request = *NewRequest::Create(fields, Limits(), 7);
  const absl::Status status = request.AttachBadWords(words, Limits());
  return status.ok() ? "ok" : base::FieldOf(status);
}

TEST(RequestLimits, BadWordsHaveABoundOnAllTheirTokens) {
  EXPECT_EQ(WithWords({}, {Tokens(2047)}), "ok");
  EXPECT_EQ(WithWords({}, {Tokens(2048)}), "bad_words");
  EXPECT_EQ(WithWords({}, {{kVocabulary}}), "bad_words");
}

TEST(RequestLimits, ParametersThatLeaveNothingToDrawAreRefused) {
  RequestFields fields;
  fields.allowed_token_ids = {3, 4};
  EXPECT_EQ(WithWords(fields, {{3}, {4, 4}}), "ok");
  EXPECT_EQ(WithWords(fields, {{3}, {4}}), "bad_words");
  fields.allowed_token_ids = {kVocabulary - 1, 9};
  fields.stop_token_ids = {9};
  EXPECT_EQ(WithWords(fields, {}), "ok");
  fields.min_tokens = 1;
  EXPECT_EQ(Verdict([&](RequestFields& f) { f = fields; }), "allowed_token_ids");
  fields.ignore_eos = true;
  EXPECT_EQ(Verdict([&](RequestFields& f) { f = fields; }), "ok");
}

}  // namespace
}  // namespace pagoda::scheduler
