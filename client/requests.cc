#include "client/requests.h"

namespace pagoda::client {
namespace {

void Fill(const SamplingOptions& options, v1::SamplingParameters& sampling) {
  if (options.temperature) sampling.set_temperature(*options.temperature);
  if (options.top_p) sampling.set_top_p(*options.top_p);
  if (options.top_k) sampling.set_top_k(*options.top_k);
  if (options.min_p) sampling.set_min_p(*options.min_p);
  if (options.seed) sampling.set_seed(*options.seed);
  if (options.n) sampling.set_n(*options.n);
  if (options.presence_penalty) sampling.set_presence_penalty(*options.presence_penalty);
  if (options.frequency_penalty) sampling.set_frequency_penalty(*options.frequency_penalty);
  if (options.repetition_penalty) sampling.set_repetition_penalty(*options.repetition_penalty);
  for (const auto& [id, bias] : options.logit_bias) (*sampling.mutable_logit_bias())[id] = bias;
  for (const std::uint32_t id : options.allowed_token_ids) {
    sampling.mutable_allowed_token_ids()->add_ids(id);
  }
  for (const std::string& word : options.bad_words) sampling.add_bad_words(word);
}

void Fill(const OutputOptions& options, v1::OutputParameters& output) {
  if (options.logprobs) output.set_logprobs(*options.logprobs);
  if (options.prompt_logprobs) output.set_prompt_logprobs(*options.prompt_logprobs);
  for (const std::uint32_t id : options.logprob_token_ids) output.add_logprob_token_ids(id);
  if (options.echo) output.set_echo(true);
  if (options.show_special_tokens) output.set_skip_special_tokens(false);
}

void Fill(const StopOptions& options, v1::StopParameters& stop) {
  if (options.max_tokens) stop.set_max_tokens(*options.max_tokens);
  if (options.min_tokens) stop.set_min_tokens(*options.min_tokens);
  for (const std::string& text : options.stop) stop.add_stop(text);
  for (const std::uint32_t id : options.stop_token_ids) stop.add_stop_token_ids(id);
  if (options.ignore_eos) stop.set_ignore_eos(true);
  if (options.include_stop_str) stop.set_include_stop_str_in_output(true);
}

// The parts that both kinds of request have under the same names.
template <typename Request>
void FillShared(const Options& options, Request& request) {
  request.set_model(options.model);
  Fill(options.sampling, *request.mutable_sampling());
  Fill(options.stop, *request.mutable_stop());
  Fill(options.output, *request.mutable_output());
  v1::RequestOptions& rest = *request.mutable_options();
  if (options.cache_salt) rest.set_cache_salt(*options.cache_salt);
  if (options.skip_reading_prefix_cache) rest.set_skip_reading_prefix_cache(true);
  if (options.priority) rest.set_priority(*options.priority);
  rest.set_client_request_id(options.client_request_id);
}

}  // namespace

v1::GenerateRequest MakeGenerateRequest(const Options& options, const std::string& text) {
  v1::GenerateRequest request;
  FillShared(options, request);
  if (options.prompt_ids.empty()) {
    request.set_text(text);
  } else {
    for (const std::uint32_t id : options.prompt_ids) request.mutable_token_ids()->add_ids(id);
  }
  return request;
}

v1::ChatRequest MakeChatRequest(const Options& options,
                                const std::vector<v1::ChatMessage>& history) {
  v1::ChatRequest request;
  FillShared(options, request);
  for (const v1::ChatMessage& message : history) *request.add_messages() = message;
  request.set_template_variables_json(options.template_variables);
  return request;
}

}  // namespace pagoda::client
