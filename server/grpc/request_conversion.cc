#include "server/grpc/request_conversion.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"

namespace pagoda::server {
namespace {

absl::Status NotBuilt(std::string_view field) {
  return base::WithReason(
      absl::UnimplementedError(
          absl::StrCat(base::ToAbsl(field), ": not built in this server yet; leave the field out")),
      reason::kNotBuilt);
}

template <typename Request>
absl::Status CheckBuilt(const Request& request) {
  if (!request.options().adapter().empty()) return NotBuilt("options.adapter");
  if (request.sampling().has_structured_output()) return NotBuilt("sampling.structured_output");
  if (request.stop().has_thinking_token_budget()) return NotBuilt("stop.thinking_token_budget");
  if (request.stop().has_repetition_detection()) return NotBuilt("stop.repetition_detection");
  return absl::OkStatus();
}

void SetSampling(const v1::SamplingParameters& sampling, scheduler::RequestFields& fields) {
  if (sampling.has_temperature()) fields.temperature = sampling.temperature();
  if (sampling.has_top_p()) fields.top_p = sampling.top_p();
  if (sampling.has_top_k()) fields.top_k = sampling.top_k();
  if (sampling.has_min_p()) fields.min_p = sampling.min_p();
  if (sampling.has_n()) fields.n = sampling.n();
  if (sampling.has_seed()) fields.seed = sampling.seed();
  if (sampling.has_presence_penalty()) fields.presence_penalty = sampling.presence_penalty();
  if (sampling.has_frequency_penalty()) fields.frequency_penalty = sampling.frequency_penalty();
  if (sampling.has_repetition_penalty()) fields.repetition_penalty = sampling.repetition_penalty();
  for (const auto& [token, bias] : sampling.logit_bias()) {
    fields.logit_bias.push_back({token, bias});
  }
  if (sampling.has_allowed_token_ids()) {
    const auto& ids = sampling.allowed_token_ids().ids();
    fields.allowed_token_ids.emplace(ids.begin(), ids.end());
  }
}

void SetStop(const v1::StopParameters& stop, CallInput& input) {
  scheduler::RequestFields& fields = input.fields;
  if (stop.has_max_tokens()) fields.max_tokens = stop.max_tokens();
  if (stop.has_min_tokens()) fields.min_tokens = stop.min_tokens();
  if (stop.has_ignore_eos()) fields.ignore_eos = stop.ignore_eos();
  if (stop.has_include_stop_str_in_output()) {
    fields.include_stop_string = stop.include_stop_str_in_output();
  }
  fields.stop_token_ids.assign(stop.stop_token_ids().begin(), stop.stop_token_ids().end());
  input.stops.assign(stop.stop().begin(), stop.stop().end());
}

void SetOutput(const v1::OutputParameters& output, CallInput& input) {
  if (output.has_logprobs()) input.fields.logprobs = output.logprobs();
  if (output.has_prompt_logprobs()) input.fields.prompt_logprobs = output.prompt_logprobs();
  const auto& ids = output.logprob_token_ids();
  input.fields.logprob_token_ids.assign(ids.begin(), ids.end());
  input.output.echo = output.echo();
  input.output.skip_special_tokens =
      !output.has_skip_special_tokens() || output.skip_special_tokens();
}

// The parts that Generate and Chat share.
template <typename Request>
absl::StatusOr<CallInput> SharedParts(const Request& request) {
  PAGODA_RETURN_IF_ERROR(CheckBuilt(request));
  CallInput input;
  input.model = request.model();
  SetSampling(request.sampling(), input.fields);
  const auto& bad_words = request.sampling().bad_words();
  input.bad_words.assign(bad_words.begin(), bad_words.end());
  SetStop(request.stop(), input);
  SetOutput(request.output(), input);
  const v1::RequestOptions& options = request.options();
  if (options.has_priority()) input.fields.priority = options.priority();
  if (options.has_skip_reading_prefix_cache()) {
    input.fields.skip_reading_prefix_cache = options.skip_reading_prefix_cache();
  }
  if (options.has_cache_salt()) input.cache_salt = options.cache_salt();
  input.client_request_id = options.client_request_id();
  return input;
}

// A ChatRequest, or the conversation of a TokenizeRequest.
template <typename Conversation>
ChatPrompt ToChat(Conversation& conversation) {
  ChatPrompt chat;
  chat.add_generation_prompt =
      !conversation.has_add_generation_prompt() || conversation.add_generation_prompt();
  chat.messages.reserve(static_cast<std::size_t>(conversation.messages_size()));
  for (v1::ChatMessage& message : *conversation.mutable_messages()) {
    chat.messages.push_back({std::move(*message.mutable_role()),
                             std::move(*message.mutable_content()),
                             std::move(*message.mutable_fields_json())});
  }
  for (std::string& tool : *conversation.mutable_tools_json()) {
    chat.tools_json.push_back(std::move(tool));
  }
  chat.template_variables_json = std::move(*conversation.mutable_template_variables_json());
  return chat;
}

// How a text is read says nothing about a prompt that is none.
template <typename Request>
absl::Status CheckNoTextOptions(const Request& request) {
  if (request.has_add_bos()) return base::FieldError("add_bos", "belongs to text; leave it out");
  if (request.has_parse_special_tokens()) {
    return base::FieldError("parse_special_tokens", "belongs to text; leave it out");
  }
  return absl::OkStatus();
}

template <typename Request>
TextPrompt ToText(Request& request) {
  TextPrompt text;
  text.text = std::move(*request.mutable_text());
  text.parse_special_tokens = request.parse_special_tokens();
  if (request.has_add_bos()) text.add_bos = request.add_bos();
  return text;
}

}  // namespace

absl::Status CheckFieldsKnown(const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  std::vector<const google::protobuf::Message*> parts = {&message};
  std::vector<const FieldDescriptor*> fields;
  while (!parts.empty()) {
    const google::protobuf::Message& part = *parts.back();
    parts.pop_back();
    const google::protobuf::Reflection& reflection = *part.GetReflection();
    if (const auto& unknown = reflection.GetUnknownFields(part); !unknown.empty()) {
      return base::WithReason(
          absl::UnimplementedError(absl::StrCat(
              part.GetDescriptor()->full_name(), ": this server knows no field of number ",
              unknown.field(0).number(), "; leave it out, or ask a server that knows it")),
          reason::kNotBuilt);
    }
    reflection.ListFields(part, &fields);
    for (const FieldDescriptor* const field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
      if (!field->is_repeated()) {
        parts.push_back(&reflection.GetMessage(part, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(part, field); ++i) {
        parts.push_back(&reflection.GetRepeatedMessage(part, field, i));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CallInput> ToCallInput(v1::GenerateRequest& request) {
  PAGODA_ASSIGN_OR_RETURN(CallInput input, SharedParts(request));
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      input.prompt = ToText(request);
      return input;
    case v1::GenerateRequest::kTokenIds: {
      PAGODA_RETURN_IF_ERROR(CheckNoTextOptions(request));
      const auto& ids = request.token_ids().ids();
      input.prompt = TokenPrompt(ids.begin(), ids.end());
      return input;
    }
    case v1::GenerateRequest::PROMPT_NOT_SET:
      break;
  }
  return base::FieldError("prompt", "absent; send text or token_ids");
}

absl::StatusOr<CallInput> ToCallInput(v1::ChatRequest& request) {
  PAGODA_ASSIGN_OR_RETURN(CallInput input, SharedParts(request));
  input.prompt = ToChat(request);
  return input;
}

absl::StatusOr<PromptInput> ToPromptInput(v1::TokenizeRequest& request) {
  switch (request.input_case()) {
    case v1::TokenizeRequest::kText:
      return PromptInput(ToText(request));
    case v1::TokenizeRequest::kChat:
      PAGODA_RETURN_IF_ERROR(CheckNoTextOptions(request));
      return PromptInput(ToChat(*request.mutable_chat()));
    case v1::TokenizeRequest::INPUT_NOT_SET:
      break;
  }
  return base::FieldError("input", "absent; send text or chat");
}

base::Instant ToInstant(std::chrono::system_clock::time_point deadline,
                        std::chrono::system_clock::time_point wall_now, base::Instant now) {
  constexpr std::chrono::hours kFar{24 * 365};
  if (deadline > wall_now + kFar) return base::Instant::Never();
  return now.PlusNanos(
      std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - wall_now).count());
}

}  // namespace pagoda::server
