#include "client/reply.h"

#include <cstdio>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/progress.h"

namespace pagoda::client {
namespace {

// A server's answer names them; no more are believed.
constexpr std::uint32_t kMaxChoices = 4096;

std::string_view ReasonName(v1::FinishReason reason) {
  switch (reason) {
    case v1::FINISH_REASON_STOP:
      return "stop";
    case v1::FINISH_REASON_LENGTH:
      return "length";
    default:
      return "unspecified";
  }
}

void Take(const v1::GenerateResponse& response, Reply& reply) {
  reply.request_id = response.request_id();
  for (const v1::ChoiceDelta& delta : response.deltas()) {
    if (delta.index() >= kMaxChoices) continue;
    if (delta.index() >= reply.choices.size()) reply.choices.resize(delta.index() + 1);
    ChoiceReply& choice = reply.choices[delta.index()];
    choice.text += delta.text();
    choice.token_ids.insert(choice.token_ids.end(), delta.token_ids().begin(),
                            delta.token_ids().end());
    choice.logprobs.insert(choice.logprobs.end(), delta.logprobs().begin(), delta.logprobs().end());
  }
  if (response.has_prompt()) {
    const std::string text = reply.prompt.text() + response.prompt().text();
    reply.prompt.MergeFrom(response.prompt());
    reply.prompt.set_text(text);
  }
  if (response.has_finish()) {
    reply.finished = true;
    reply.finish = response.finish();
  }
}

template <typename Scores>
nlohmann::json LogprobsAsJson(const Scores& scores) {
  nlohmann::json made = nlohmann::json::array();
  for (const v1::TokenLogprobs& score : scores) {
    nlohmann::json top = nlohmann::json::array();
    for (const v1::TokenLogprob& each : score.top()) {
      top.push_back({{"token_id", each.token_id()}, {"logprob", each.logprob()}});
    }
    made.push_back({{"token_id", score.token_id()},
                    {"logprob", score.logprob()},
                    {"rank", score.rank()},
                    {"top", std::move(top)}});
  }
  return made;
}

nlohmann::json ReceiptAsJson(const v1::Receipt& receipt) {
  return {{"prompt_tokens", receipt.prompt_tokens()},
          {"cached_tokens", receipt.cached_tokens()},
          {"generated_tokens", receipt.generated_tokens()},
          {"discarded_tokens", receipt.discarded_tokens()},
          {"preemptions", receipt.preemptions()},
          {"queue_steps", receipt.queue_steps()},
          {"prefill_steps", receipt.prefill_steps()},
          {"decode_steps", receipt.decode_steps()},
          {"blocks_touched", receipt.blocks_touched()},
          {"blocks_reused", receipt.blocks_reused()},
          {"blocks_peak", receipt.blocks_peak()},
          {"block_steps", receipt.block_steps()},
          {"queue_ms", receipt.queue_ms()},
          {"first_token_ms", receipt.first_token_ms()},
          {"total_ms", receipt.total_ms()},
          {"numerics_id", receipt.numerics_id()}};
}

nlohmann::json ChoiceAsJson(const Reply& reply, std::uint32_t index) {
  nlohmann::json made = {{"text", reply.choices[index].text},
                         {"token_ids", reply.choices[index].token_ids},
                         {"finish_reason", ReasonOf(reply, index)}};
  const auto& logprobs = reply.choices[index].logprobs;
  if (!logprobs.empty()) made["logprobs"] = LogprobsAsJson(logprobs);
  for (const v1::ChoiceFinish& choice : reply.finish.choices()) {
    if (choice.index() != index) continue;
    if (choice.has_matched_stop()) made["matched_stop"] = choice.matched_stop();
    if (choice.has_matched_stop_token()) made["matched_stop_token"] = choice.matched_stop_token();
  }
  return made;
}

}  // namespace

grpc::Status ReadReply(grpc::ClientContext& context,
                       grpc::ClientReader<v1::GenerateResponse>& stream, Console& console,
                       const std::function<void(std::string_view)>& show, Reply& reply) {
  const Interrupts::Scope cancel(console.interrupts, [&context] { context.TryCancel(); });
  Progress progress(console, "waiting for the first words");
  v1::GenerateResponse response;
  while (stream.Read(&response)) {
    const std::size_t shown = reply.text().size();
    const std::size_t echoed = reply.prompt.text().size();
    Take(response, reply);
    if (reply.prompt.text().size() > echoed) {
      progress.Stop();
      show(std::string_view(reply.prompt.text()).substr(echoed));
    }
    if (reply.text().size() == shown) continue;
    progress.Stop();
    show(std::string_view(reply.text()).substr(shown));
  }
  grpc::Status status = stream.Finish();
  if (!status.ok() || reply.finished) return status;
  return {grpc::StatusCode::INTERNAL, "the stream ended without a finish"};
}

nlohmann::json ReplyAsJson(const Reply& reply) {
  nlohmann::json made = ChoiceAsJson(reply, 0);
  made["receipt"] = ReceiptAsJson(reply.finish.receipt());
  made["seed"] = reply.finish.seed();
  made["max_tokens"] = reply.finish.max_tokens();
  made["request_id"] = reply.request_id;
  if (reply.prompt.ByteSizeLong() > 0) {
    made["prompt"] = {{"text", reply.prompt.text()},
                      {"token_ids", reply.prompt.token_ids()},
                      {"logprobs", LogprobsAsJson(reply.prompt.logprobs())}};
  }
  if (reply.choices.size() == 1) return made;
  for (std::uint32_t i = 0; i < reply.choices.size(); ++i) {
    nlohmann::json choice = ChoiceAsJson(reply, i);
    choice["index"] = i;
    made["choices"].push_back(std::move(choice));
  }
  return made;
}

std::string_view ReasonOf(const Reply& reply, std::uint32_t index) {
  for (const v1::ChoiceFinish& choice : reply.finish.choices()) {
    if (choice.index() == index) return ReasonName(choice.reason());
  }
  return "unspecified";
}

std::string ReceiptAsText(const Reply& reply) {
  const v1::Receipt& receipt = reply.finish.receipt();
  const std::string_view reason = ReasonOf(reply, 0);
  char line[512];
  std::snprintf(line, std::size(line),
                "[%.*s: %d prompt tokens (%d cached), %d generated; %lld blocks at most; first "
                "token %.0f ms, all %.0f ms; seed %llu]",
                static_cast<int>(reason.size()), reason.data(), receipt.prompt_tokens(),
                receipt.cached_tokens(), receipt.generated_tokens(),
                static_cast<long long>(receipt.blocks_peak()), receipt.first_token_ms(),
                receipt.total_ms(), static_cast<unsigned long long>(reply.finish.seed()));
  return line;
}

}  // namespace pagoda::client
