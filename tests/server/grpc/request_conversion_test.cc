#include "server/grpc/request_conversion.h"

#include <gtest/gtest.h>

#include <functional>

namespace pagoda::server {
namespace {

TEST(RequestConversion, AbsentStaysAbsentAndZeroStaysZero) {
  v1::GenerateRequest request;
  request.set_text("x");
  auto input = ToCallInput(request);
  ASSERT_TRUE(input.ok());
  EXPECT_FALSE(input->fields.temperature.has_value());
  EXPECT_FALSE(input->fields.seed.has_value());
  EXPECT_FALSE(input->fields.max_tokens.has_value());
  EXPECT_FALSE(input->cache_salt.has_value());
  request.set_text("x");
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_seed(0);
  request.mutable_stop()->set_max_tokens(0);
  request.mutable_options()->set_cache_salt("");
  input = ToCallInput(request);
  EXPECT_EQ(input->fields.temperature, 0.0f);
  EXPECT_EQ(input->fields.seed, 0u);
  EXPECT_EQ(input->fields.max_tokens, 0);
  EXPECT_EQ(input->cache_salt, "");
}

TEST(RequestConversion, WhatIsNotBuiltIsRefusedByName) {
  const auto refused = [](const std::function<void(v1::GenerateRequest&)>& change) {
    v1::GenerateRequest request;
    request.set_text("x");
    change(request);
    const absl::Status status = ToCallInput(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(base::ReasonOf(status), reason::kNotBuilt);
    return std::string(status.message()).substr(0, status.message().find(':'));
  };
  using Request = v1::GenerateRequest;
  EXPECT_EQ(refused([](Request& r) { r.mutable_options()->set_adapter("x"); }), "options.adapter");
  EXPECT_EQ(refused([](Request& r) {
              r.mutable_sampling()->mutable_structured_output()->set_regex("a+");
            }),
            "sampling.structured_output");
  EXPECT_EQ(refused([](Request& r) { r.mutable_stop()->set_thinking_token_budget(0); }),
            "stop.thinking_token_budget");
  EXPECT_EQ(refused([](Request& r) { r.mutable_stop()->mutable_repetition_detection(); }),
            "stop.repetition_detection");
}

// As a newer client would send it: in the request, in a part of it, in one of several parts.
TEST(RequestConversion, AFieldThatIsNotKnownIsRefusedByItsNumberWhereverItStands) {
  const auto add = [](google::protobuf::Message& message, int number) {
    message.GetReflection()->MutableUnknownFields(&message)->AddVarint(number, 1);
  };
  const auto refusal = [](const v1::ChatRequest& request) {
    const absl::Status status = CheckFieldsKnown(request);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(base::ReasonOf(status), reason::kNotBuilt);
    return std::string(status.message()).substr(0, status.message().find(';'));
  };
  v1::ChatRequest known;
  (*known.mutable_sampling()->mutable_logit_bias())[3] = 1.0f;
  known.add_messages()->set_role("user");
  known.add_messages()->set_role("assistant");
  EXPECT_TRUE(CheckFieldsKnown(known).ok());
  v1::ChatRequest request = known;
  add(request, 900);
  EXPECT_EQ(refusal(request), "pagoda.v1.ChatRequest: this server knows no field of number 900");
  request = known;
  add(*request.mutable_sampling(), 901);
  EXPECT_EQ(refusal(request),
            "pagoda.v1.SamplingParameters: this server knows no field of number 901");
  request = known;
  add(*request.mutable_messages(1), 902);
  EXPECT_EQ(refusal(request), "pagoda.v1.ChatMessage: this server knows no field of number 902");
}

TEST(RequestConversion, DefaultsWrittenOutAreNotRefused) {
  v1::GenerateRequest request;
  request.set_text("x");
  request.mutable_sampling()->set_n(1);
  request.mutable_options()->set_skip_reading_prefix_cache(false);
  request.mutable_stop()->set_include_stop_str_in_output(false);
  request.mutable_output()->set_echo(false);
  request.mutable_output()->set_skip_special_tokens(true);
  EXPECT_TRUE(ToCallInput(request).ok());
}

TEST(RequestConversion, HowTheTextIsWrittenArrives) {
  v1::GenerateRequest request;
  request.set_text("x");
  auto input = ToCallInput(request);
  ASSERT_TRUE(input.ok());
  EXPECT_TRUE(input->output.skip_special_tokens);
  EXPECT_FALSE(input->fields.include_stop_string.has_value());
  request.set_text("x");
  request.mutable_stop()->set_include_stop_str_in_output(true);
  request.mutable_output()->set_skip_special_tokens(false);
  request.mutable_output()->set_spaces_between_special_tokens(false);
  input = ToCallInput(request);
  ASSERT_TRUE(input.ok());
  EXPECT_FALSE(input->output.skip_special_tokens);
  EXPECT_EQ(input->fields.include_stop_string, true);
}

TEST(RequestConversion, WhatIsDrawnAndShownArrives) {
  v1::GenerateRequest request;
  request.set_text("x");
  auto input = ToCallInput(request);
  ASSERT_TRUE(input.ok());
  EXPECT_FALSE(input->fields.logprobs.has_value());
  EXPECT_FALSE(input->fields.prompt_logprobs.has_value());
  EXPECT_FALSE(input->fields.allowed_token_ids.has_value());
  EXPECT_FALSE(input->output.echo);
  EXPECT_FALSE(input->fields.skip_reading_prefix_cache.has_value());

  request.set_text("x");
  request.mutable_options()->set_skip_reading_prefix_cache(true);
  request.mutable_sampling()->mutable_allowed_token_ids();  // there, and empty
  request.mutable_sampling()->add_bad_words("b");
  request.mutable_output()->set_logprobs(0);
  request.mutable_output()->set_prompt_logprobs(0);
  request.mutable_output()->set_echo(true);
  request.mutable_output()->add_logprob_token_ids(9);
  input = ToCallInput(request);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->fields.logprobs, 0);
  EXPECT_EQ(input->fields.prompt_logprobs, 0);
  EXPECT_EQ(input->fields.skip_reading_prefix_cache, true);
  ASSERT_TRUE(input->fields.allowed_token_ids.has_value());
  EXPECT_TRUE(input->fields.allowed_token_ids->empty());
  EXPECT_EQ(input->bad_words, (std::vector<std::string>{"b"}));
  EXPECT_EQ(input->fields.logprob_token_ids, (std::vector<base::TokenId>{9}));
  EXPECT_TRUE(input->output.echo);
  request.set_text("x");
  request.mutable_sampling()->mutable_allowed_token_ids()->add_ids(4);
  EXPECT_EQ(*ToCallInput(request)->fields.allowed_token_ids, (std::vector<base::TokenId>{4}));
}

TEST(RequestConversion, AConversationArrivesWithItsToolsInBothKindsOfCall) {
  v1::ChatRequest request;
  v1::TokenizeRequest tokenize;
  const auto fill = [](auto& conversation) {
    v1::ChatMessage& message = *conversation.add_messages();
    message.set_role("assistant");
    message.set_content("a");
    message.set_fields_json("{\"content\": null}");
    conversation.set_add_generation_prompt(false);
    conversation.add_tools_json("{}");
    conversation.set_template_variables_json("{\"x\": 1}");
  };
  fill(request);
  fill(*tokenize.mutable_chat());
  const auto input = ToCallInput(request);
  const auto prompt = ToPromptInput(tokenize);
  ASSERT_TRUE(input.ok() && prompt.ok());
  for (const PromptInput* each : {&input->prompt, &*prompt}) {
    const ChatPrompt& chat = std::get<ChatPrompt>(*each);
    ASSERT_EQ(chat.messages.size(), 1u);
    EXPECT_EQ(chat.messages[0].role, "assistant");
    EXPECT_EQ(chat.messages[0].content, "a");
    EXPECT_EQ(chat.messages[0].fields_json, "{\"content\": null}");
    EXPECT_FALSE(chat.add_generation_prompt);
    EXPECT_EQ(chat.tools_json, std::vector<std::string>{"{}"});
    EXPECT_EQ(chat.template_variables_json, "{\"x\": 1}");
  }
  EXPECT_TRUE(std::get<ChatPrompt>(ToCallInput(*std::make_unique<v1::ChatRequest>())->prompt)
                  .add_generation_prompt);
}

TEST(RequestConversion, AnAbsentPromptIsABadField) {
  v1::GenerateRequest request;
  EXPECT_EQ(base::FieldOf(ToCallInput(request).status()), "prompt");
  v1::TokenizeRequest tokenize;
  EXPECT_EQ(base::FieldOf(ToPromptInput(tokenize).status()), "input");
}

TEST(RequestConversion, HowATextIsReadIsRefusedBesideAPromptThatIsNone) {
  v1::GenerateRequest request;
  request.mutable_token_ids()->add_ids(1);
  request.set_add_bos(false);
  EXPECT_EQ(base::FieldOf(ToCallInput(request).status()), "add_bos");
  request.clear_add_bos();
  request.set_parse_special_tokens(true);
  EXPECT_EQ(base::FieldOf(ToCallInput(request).status()), "parse_special_tokens");
  v1::TokenizeRequest tokenize;
  tokenize.mutable_chat()->add_messages();
  tokenize.set_parse_special_tokens(true);
  EXPECT_EQ(base::FieldOf(ToPromptInput(tokenize).status()), "parse_special_tokens");
  tokenize.clear_parse_special_tokens();
  EXPECT_TRUE(ToPromptInput(tokenize).ok());
}

TEST(RequestConversion, DeadlinesMoveToTheMonotonicClock) {
  using std::chrono::system_clock;
  const system_clock::time_point wall{std::chrono::seconds(1'000'000)};
  const base::Instant now = base::Instant::FromNanos(5'000);
  EXPECT_EQ(ToInstant(wall + std::chrono::milliseconds(3), wall, now), now.PlusMillis(3));
  EXPECT_LT(ToInstant(wall - std::chrono::seconds(1), wall, now), now);
  EXPECT_TRUE(ToInstant(system_clock::time_point::max(), wall, now).is_never());
}

}  // namespace
}  // namespace pagoda::server
