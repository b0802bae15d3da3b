#include "server/grpc/reply_conversion.h"

#include <grpcpp/support/slice.h>

#include <string>

namespace pagoda::server {
namespace {

void SetReceipt(const ReplyEnd& end, std::string_view numerics_id, v1::Receipt& receipt) {
  receipt.set_prompt_tokens(end.receipt.prompt_tokens);
  receipt.set_cached_tokens(end.receipt.cached_tokens);
  receipt.set_generated_tokens(end.receipt.generated_tokens);
  receipt.set_discarded_tokens(end.receipt.discarded_tokens);
  receipt.set_preemptions(end.receipt.preemptions);
  receipt.set_queue_steps(end.receipt.queue_steps);
  receipt.set_prefill_steps(end.receipt.prefill_steps);
  receipt.set_decode_steps(end.receipt.decode_steps);
  receipt.set_blocks_touched(end.receipt.blocks_touched);
  receipt.set_blocks_reused(end.receipt.blocks_reused);
  receipt.set_blocks_peak(end.receipt.blocks_peak);
  receipt.set_block_steps(end.receipt.block_steps);
  receipt.set_queue_ms(end.queue_ms);
  receipt.set_first_token_ms(end.first_token_ms);
  receipt.set_total_ms(end.total_ms);
  receipt.set_numerics_id(std::string(numerics_id));
}

void SetChoices(const ReplyEnd& end, v1::Finish& finish) {
  for (const ChoiceEnd& ended : end.choices) {
    v1::ChoiceFinish& choice = *finish.add_choices();
    choice.set_index(static_cast<std::uint32_t>(finish.choices_size() - 1));
    choice.set_reason(ended.reason == scheduler::FinishReason::kStop ? v1::FINISH_REASON_STOP
                                                                     : v1::FINISH_REASON_LENGTH);
    if (ended.matched_stop.has_value()) choice.set_matched_stop(*ended.matched_stop);
    if (ended.matched_stop_token.has_value()) {
      choice.set_matched_stop_token(*ended.matched_stop_token);
    }
  }
}

// What an error cut short has no choice that finished, and still a receipt.
void SetFinish(const ReplyEnd& end, std::string_view numerics_id, v1::Finish& finish) {
  if (end.status.ok()) SetChoices(end, finish);
  SetReceipt(end, numerics_id, *finish.mutable_receipt());
  finish.set_seed(end.seed);
  finish.set_max_tokens(end.max_tokens);
}

void AddScores(const ScoreList& list,
               google::protobuf::RepeatedPtrField<v1::TokenLogprobs>& logprobs) {
  for (const base::TokenScore& score : list.scores) {
    v1::TokenLogprobs& made = *logprobs.Add();
    made.set_token_id(score.of.token);
    made.set_logprob(score.of.logprob);
    made.set_rank(score.rank);
    for (const base::TokenLogprob& each : list.AlternativesOf(score)) {
      v1::TokenLogprob& top = *made.add_top();
      top.set_token_id(each.token);
      top.set_logprob(each.logprob);
    }
  }
}

}  // namespace

void ToGenerateResponse(const ReplyPart& part, std::string_view request_id,
                        std::string_view numerics_id, v1::GenerateResponse& response) {
  response.Clear();
  response.set_request_id(std::string(request_id));
  if (!part.prompt.empty()) {
    v1::PromptDelta& prompt = *response.mutable_prompt();
    prompt.set_text(part.prompt.text);
    prompt.mutable_token_ids()->Assign(part.prompt.tokens.begin(), part.prompt.tokens.end());
    AddScores(part.prompt.scores, *prompt.mutable_logprobs());
  }
  for (std::uint32_t i = 0; i < part.choices.size(); ++i) {
    const ChoicePart& choice = part.choices[i];
    if (!choice.has_content()) continue;
    v1::ChoiceDelta& delta = *response.add_deltas();
    delta.set_index(i);
    delta.set_text(choice.text);
    delta.mutable_token_ids()->Assign(choice.tokens.begin(), choice.tokens.end());
    AddScores(choice.scores, *delta.mutable_logprobs());
  }
  if (part.end.has_value() && (part.end->status.ok() || part.end->has_receipt)) {
    SetFinish(*part.end, numerics_id, *response.mutable_finish());
  }
}

v1::Model ToModel(const ServedModel& model) {
  const ModelCard& card = model.card;
  v1::Model made;
  for (const std::string& name : card.names) made.add_names(name);
  made.set_architecture(card.architecture);
  made.set_num_parameters(card.num_parameters);
  made.set_weight_format(card.weight_format);
  made.set_weight_bytes(card.weight_bytes);
  made.set_activation_dtype(card.activation_dtype);
  made.set_kv_cache_dtype(card.kv_cache_dtype);
  made.set_numerics_id(card.numerics_id);
  made.set_vocabulary_size(model.limits.vocabulary_size);
  made.set_max_model_len(model.limits.max_model_len);
  made.set_context_length(card.context_length);
  made.set_block_size(model.limits.block_size);
  made.set_num_kv_blocks(card.num_kv_blocks);
  made.set_max_num_seqs(card.max_num_seqs);
  made.set_max_num_batched_tokens(card.max_num_batched_tokens);
  for (base::TokenId id : model.limits.eos_tokens) made.add_eos_token_ids(id);
  if (const auto bos = model.tokenizer->bos_token()) made.set_bos_token_id(*bos);
  made.set_has_chat_template(model.chat_template != nullptr);
  made.set_kv_bytes_per_token(card.kv_bytes_per_token);
  return made;
}

::grpc::ByteBuffer SerializeMessage(const google::protobuf::MessageLite& message) {
  const std::size_t size = message.ByteSizeLong();
  ::grpc::Slice slice(size);
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  return ::grpc::ByteBuffer(&slice, 1);
}

}  // namespace pagoda::server
